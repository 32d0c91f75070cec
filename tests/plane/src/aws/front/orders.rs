//! Launches and terminations of instances.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};

use super::super::answers::{refusal, text};
use super::super::fleet::{self, Outcome, Override, Wanted};
use super::super::request::Request;
use super::{Inner, Pool, Shared};

impl Inner {
    /// Returns the capacity pool of an override.
    fn pool(&self, of: &Override, spot: bool) -> Pool {
        let zone = self.zones.get(&of.subnet).cloned().unwrap_or_default();
        (of.instance_type.clone(), zone, spot)
    }
}

impl Shared {
    /// Returns the capacity pools of a request in the order in which EC2 uses them. Spot pools are ordered by the capacity left,
    /// as `price-capacity-optimized` does among pools of nearly the same price, and the pools of one request have nearly the same
    /// price. On-demand pools are ordered by priority.
    ///
    /// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-allocation-strategy.html>.
    fn in_turn<'a>(&self, wanted: &'a Wanted) -> Vec<&'a Override> {
        let mut pools: Vec<&Override> = wanted.overrides.iter().collect();
        if wanted.spot {
            let inner = self.inner();
            let stock =
                |pool: &Override| inner.stock.get(&inner.pool(pool, true)).copied().unwrap_or(usize::MAX);
            pools.sort_by_cached_key(|pool| std::cmp::Reverse(stock(pool)));
        }
        pools
    }

    /// Answers CreateFleet: launches from one pool after the other, as far as the stock of each goes.
    pub(super) async fn create_fleet(
        &self,
        asked: &Request,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> anyhow::Result<Response<Body>> {
        let wanted = Wanted::read(asked);
        let _turn = self.fleets.lock().await;
        if let Some(answered) = self.inner().fleets.answered(&wanted) {
            if let Ok(answer) = answered {
                return Ok(text(StatusCode::OK, "text/xml", &answer));
            }
            let message = "The client token you have provided is associated with a resource that was created with \
                           different parameters.";
            return Ok(refusal(asked, "IdempotentParameterMismatch", message));
        }
        let mut outcomes = Vec::new();
        let mut left = wanted.count;
        for pool in self.in_turn(&wanted) {
            if left == 0 {
                break;
            }
            let key = self.inner().pool(pool, wanted.spot);
            let (refused, stock) = {
                let inner = self.inner();
                (inner.refusals.get(&key).cloned(), inner.stock.get(&key).copied().unwrap_or(usize::MAX))
            };
            if let Some(code) = refused {
                outcomes.push((
                    pool.clone(),
                    Outcome::Refused(code, "The stand-in was told to refuse.".to_owned()),
                ));
                continue;
            }
            let take = left.min(stock);
            if take > 0 {
                let body = Bytes::from(fleet::just(asked, pool, take));
                let (status, answer) = self.text(&Method::POST, uri, headers, body).await?;
                if status != StatusCode::OK {
                    return Ok(text(status, "text/xml", &answer));
                }
                let ids = fleet::instance_ids(&answer);
                left = left.saturating_sub(ids.len());
                let mut inner = self.inner();
                if wanted.spot {
                    inner.shown.spots.extend(ids.iter().cloned());
                }
                inner.machines.launched(asked, &pool.instance_type, &key.1, &ids);
                if let Some(instances) = &mut inner.instances {
                    instances.change(ids.iter().cloned());
                }
                if let Some(stock) = inner.stock.get_mut(&key) {
                    *stock = stock.saturating_sub(ids.len());
                }
                let delay = inner.delay;
                if delay > 0 {
                    inner.hidden.extend(ids.iter().map(|id| (id.clone(), delay)));
                }
                outcomes.push((pool.clone(), Outcome::Instances(ids)));
            }
            if take < wanted.count && left > 0 {
                let message = "There is no capacity available that matches your request.";
                outcomes.push((
                    pool.clone(),
                    Outcome::Refused("InsufficientInstanceCapacity".to_owned(), message.to_owned()),
                ));
            }
        }
        let answer = self.inner().fleets.answer(wanted, &outcomes);
        Ok(text(StatusCode::OK, "text/xml", &answer))
    }

    /// Answers a termination that includes a held instance: all its instances stay shutting down. Returns `None` if none is held.
    pub(super) fn terminate(&self, asked: &Request) -> Option<Response<Body>> {
        let mut inner = self.inner();
        let ids: Vec<String> = asked
            .indices("InstanceId.")
            .iter()
            .map(|at| asked.get(&format!("InstanceId.{at}")).to_owned())
            .collect();
        if !ids.iter().any(|id| inner.held.contains(id)) {
            return None;
        }
        inner.asked_to_go.extend(ids.clone());
        let state = "<currentState><code>32</code><name>shutting-down</name></currentState>";
        let items: Vec<String> =
            ids.iter().map(|id| format!("<item><instanceId>{id}</instanceId>{state}</item>")).collect();
        let items = items.concat();
        let answer = format!(
            "<TerminateInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><instancesSet>{items}</instancesSet>\
             </TerminateInstancesResponse>"
        );
        Some(text(StatusCode::OK, "text/xml", &answer))
    }
}
