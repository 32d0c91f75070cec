//! Checks the quotas of GPU instances, in vCPUs.
//!
//! Codes: <https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html>. Quotas are counted in vCPUs, per
//! region.

use poolwright_provider_contract::preflight::{CheckResult, Verdict};

use super::QUOTAS;
use super::answer::CallResult;
use crate::clients::Clients;

/// A quota of EC2.
struct Quota {
    code: &'static str,
    name: &'static str,
}

/// GPU types: G (T4, A10G, L4, L40S, RTX PRO) and P (V100 to B300).
const ALL: [Quota; 4] = [
    Quota { code: "L-DB2E81BA", name: "on-demand G types" },
    Quota { code: "L-3819A6DF", name: "spot G types" },
    Quota { code: "L-417A185B", name: "on-demand P types" },
    Quota { code: "L-7212CCBC", name: "spot P types" },
];

/// The quota to request, in vCPUs. The largest G and P types have 192.
const WANTED: u32 = 192;

/// Returns the verdict of each quota: its value, or the reason why it could not be read.
fn verdicts(found: &[Result<u64, String>; 4]) -> [Verdict; 4] {
    let any = found.iter().any(|one| matches!(one, Ok(vcpus) if *vcpus > 0));
    std::array::from_fn(|at| {
        let code = ALL[at].code;
        let raise = format!(
            "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} --desired-value {WANTED}"
        );
        match &found[at] {
            Ok(0) if any => Verdict::undetermined(format!(
                "0 vCPUs: Poolwright cannot launch these types. If a pool needs them: {raise}"
            )),
            Ok(0) => Verdict::wrong("0 vCPUs: Poolwright cannot launch these types", raise),
            Ok(vcpus) => Verdict::fine(format!("{vcpus} vCPUs")),
            Err(why) => Verdict::undetermined(format!(
                "{why}: aws service-quotas get-service-quota --service-code ec2 --quota-code {code}"
            )),
        }
    })
}

/// Makes the calls.
pub(super) async fn check(clients: &Clients) -> Vec<CheckResult> {
    let ask = async |quota: &Quota| -> Result<u64, String> {
        let asked =
            clients.quotas.get_service_quota().service_code("ec2").quota_code(quota.code).send().await;
        let answer = CallResult::of(&asked);
        if answer.is_forbidden() {
            return Err(
                "servicequotas:GetServiceQuota is not allowed, which Poolwright needs for nothing else"
                    .to_owned(),
            );
        }
        let value = asked.ok().and_then(|asked| asked.quota()?.value()).ok_or_else(|| answer.reason())?;
        // AWS writes the number of vCPUs as a decimal.
        Ok(if value.is_finite() && value > 0.0 { value as u64 } else { 0 })
    };
    let found = futures::join!(ask(&ALL[0]), ask(&ALL[1]), ask(&ALL[2]), ask(&ALL[3]));
    let verdicts = verdicts(&[found.0, found.1, found.2, found.3]);
    ALL.iter().zip(verdicts).map(|(quota, verdict)| CheckResult::new(QUOTAS, quota.name, verdict)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_may_run_no_gpu_at_all_is_wrong_and_one_that_may_not_run_some_is_told() {
        let none = verdicts(&[Ok(0), Ok(0), Err("later".to_owned()), Ok(0)]);
        assert!(none[0].is_wrong() && none[3].is_wrong());
        let Verdict::Wrong { fix, .. } = &none[0] else { panic!("{none:?}") };
        assert!(fix.contains("--quota-code L-DB2E81BA"), "{fix}");
        let Verdict::Undetermined(how) = &none[2] else { panic!("{none:?}") };
        assert!(how.starts_with("later: ") && how.contains("L-417A185B"), "{how}");
        let some = verdicts(&[Ok(64), Ok(0), Ok(0), Ok(0)]);
        assert_eq!(some[0], Verdict::fine("64 vCPUs"));
        assert!(some.iter().all(|one| !one.is_wrong()), "a pool may want G types alone: {some:?}");
    }
}
