//! DescribeInstances: moto's listing without what is held back, or the front's own listing.

use anyhow::ensure;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};

use super::super::answers::{refusal, text, whole};
use super::super::instances::{Instances, NAMED, question};
use super::super::listing::{terminating, without_instance};
use super::super::request::Request;
use super::{Front, Shared, headers};

/// Which of the instances that run EC2 shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// All of them.
    #[default]
    All,
    /// Only those asked for by their ids, as if somebody had changed the tags of all.
    ById,
    /// None, as with the credentials of another account.
    Nothing,
}

impl Front {
    /// Sets which of the instances that run EC2 shows from now on.
    pub fn show(&self, sight: Sight) {
        self.inner().sight = sight;
    }

    /// Makes the front list instances itself. It does not know instances launched earlier.
    pub fn keep_instances(&self) {
        self.inner().instances.get_or_insert_with(Instances::default);
    }
}

impl Shared {
    /// Answers DescribeInstances.
    pub(super) async fn list(
        &self,
        asked: &Request,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response<Body>> {
        let sight = self.inner().sight;
        let names_ids = !asked.indices("InstanceId.").is_empty();
        if sight == Sight::Nothing && names_ids {
            let message = "The instance IDs do not exist: the stand-in was told to show none.";
            return Ok(refusal(asked, "InvalidInstanceID.NotFound", message));
        }
        if sight != Sight::All && !names_ids {
            let empty = whole("DescribeInstances", "<reservationSet></reservationSet>");
            return Ok(text(StatusCode::OK, "text/xml", &empty));
        }
        let (status, answer) = match self.own_listing(asked).await? {
            Some(answer) => (StatusCode::OK, answer),
            None => self.text(method, uri, headers, body).await?,
        };
        Ok(text(status, "text/xml", &self.shown(&answer)))
    }

    /// Returns the front's own listing, if it keeps one and understands the query.
    async fn own_listing(&self, asked: &Request) -> anyhow::Result<Option<String>> {
        // A second caller must not see an older listing than the first.
        let _turn = self.listings.lock().await;
        let Some(changed) = self.inner().instances.as_mut().map(Instances::changed) else { return Ok(None) };
        let changed: Vec<String> = changed.into_iter().collect();
        for (number, some) in changed.chunks(NAMED).enumerate() {
            if let Err(error) = self.ask_about(some).await {
                // The next caller asks moto about the rest.
                if let Some(instances) = &mut self.inner().instances {
                    instances.change(changed[number * NAMED..].iter().cloned());
                }
                return Err(error);
            }
        }
        Ok(self.inner().instances.as_ref().and_then(|instances| instances.answer(asked)))
    }

    /// Asks moto about these instances and stores the response.
    async fn ask_about(&self, ids: &[String]) -> anyhow::Result<()> {
        let (uri, headers) = (Uri::from_static("/"), headers("ec2")?);
        let (status, answer) = self.text(&Method::POST, &uri, &headers, question(ids).into()).await?;
        ensure!(status == StatusCode::OK, "{status}: {answer}");
        if let Some(instances) = &mut self.inner().instances {
            instances.learn(&answer);
        }
        Ok(())
    }

    /// Removes hidden instances from a listing, and shows held instances as shutting down.
    fn shown(&self, answer: &str) -> String {
        let mut inner = self.inner();
        let mut answer = inner.shown.completed(answer);
        for id in inner.hidden.keys().cloned().collect::<Vec<_>>() {
            answer = without_instance(&answer, &id);
            if let Some(left) = inner.hidden.get_mut(&id) {
                *left -= 1;
                if *left == 0 {
                    inner.hidden.remove(&id);
                }
            }
        }
        for id in &inner.asked_to_go {
            answer = terminating(&answer, id);
        }
        answer
    }
}
