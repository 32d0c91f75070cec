//! Host ports: no two pods may use the same port of the same host IP.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::HostPort;
use crate::rules::rejection::Rejection;

/// Checks whether all wanted ports are free. As in the kube-scheduler, ports conflict if port and protocol are equal and the host
/// IPs are equal or one is `0.0.0.0`.
pub fn check<'a>(
    wanted: &BTreeSet<HostPort>,
    taken: impl IntoIterator<Item = &'a HostPort>,
) -> Result<(), Rejection> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut taken = taken.into_iter();
    let wanted_too = |taken: &HostPort| wanted.iter().find(|wanted| overlap(wanted, taken));
    taken.find_map(wanted_too).map_or(Ok(()), |port| Err(Rejection::Port(port.clone())))
}

fn overlap(one: &HostPort, other: &HostPort) -> bool {
    one.port == other.port
        && one.protocol == other.protocol
        && (one.ip.is_none() || other.ip.is_none() || one.ip == other.ip)
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ip) = &self.ip {
            write!(f, "{ip}:")?;
        }
        write!(f, "{}/{}", self.port, self.protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: u16, protocol: &str, ip: Option<&str>) -> HostPort {
        HostPort { port, protocol: protocol.into(), ip: ip.map(str::to_owned) }
    }

    fn conflict(one: HostPort, other: HostPort) -> bool {
        check(&[one].into(), &[other]).is_err()
    }

    #[test]
    fn ports_conflict_by_number_protocol_and_address() {
        let web = || port(80, "TCP", None);
        assert!(conflict(web(), web()));
        assert!(!conflict(web(), port(81, "TCP", None)));
        assert!(!conflict(web(), port(80, "UDP", None)));
    }

    #[test]
    fn every_address_conflicts_with_each_and_two_addresses_with_none_but_themselves() {
        let (any, one, other) =
            (port(80, "TCP", None), port(80, "TCP", Some("10.0.0.1")), port(80, "TCP", Some("127.0.0.1")));
        assert!(conflict(any.clone(), one.clone()) && conflict(one.clone(), any));
        assert!(conflict(one.clone(), one.clone()) && !conflict(one, other));
    }

    #[test]
    fn the_rejection_names_the_port() {
        let wanted = [port(80, "TCP", None), port(53, "UDP", Some("10.0.0.1"))].into();
        let rejection = check(&wanted, &[port(53, "UDP", None)]).expect_err("the port is taken");
        assert_eq!(
            rejection.to_string(),
            "needs host port 10.0.0.1:53/UDP, which another pod on the node uses"
        );
        assert!(check(&BTreeSet::new(), &wanted).is_ok());
    }
}
