//! The events of every machine and pod, one JSON object a line, in the order of time. The cost of a machine can be recomputed
//! from its price and the times of its two events.

use std::io::{self, Write};
use std::time::Duration;

use poolwright_report::replay::{End, History};
use serde_json::{Value, json};

/// Writes the record.
pub fn write(history: &History, out: &mut impl Write) -> io::Result<()> {
    let mut events: Vec<(Duration, Value)> = Vec::new();
    let mut say = |at: Duration, mut event: Value| {
        event["atMillis"] = json!(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        events.push((at, event));
    };
    for machine in &history.machines {
        let price = machine.price.map(|price| price.to_string());
        say(
            machine.launched,
            json!({"event": "MachineLaunched", "machine": machine.id, "claim": machine.claim, "pool": machine.pool,
                "instanceType": machine.offering.instance_type.as_str(), "zone": machine.offering.zone.as_str(),
                "capacityType": machine.offering.capacity_type.as_str(), "gpus": machine.gpus, "usdPerHour": price}),
        );
        // A machine that still runs at the end is paid until then.
        let ended = machine.gone.filter(|gone| *gone <= history.played);
        let event = if ended.is_some() { "MachineGone" } else { "MachineStillThere" };
        say(ended.unwrap_or(history.played), json!({"event": event, "machine": machine.id}));
    }
    for pod in &history.pods {
        let name = pod.model.key.to_string();
        say(pod.made, json!({"event": "PodMade", "pod": name}));
        if let Some((at, machine)) = pod.bound {
            say(at, json!({"event": "PodBound", "pod": name, "machine": history.machines[machine].id}));
        }
        if let Some(at) = pod.started {
            say(at, json!({"event": "PodStarted", "pod": name}));
        }
        if let Some((at, end)) = pod.ended {
            let event = match end {
                End::Finished => "PodFinished",
                End::MachineLost => "PodLostItsMachine",
                End::Evicted => "PodEvicted",
            };
            say(at, json!({"event": event, "pod": name}));
        }
    }
    say(history.played, json!({"event": "End"}));
    // The sort is stable: events at the same time keep the order in which they were added.
    events.sort_by_key(|(at, _)| *at);
    for (_, event) in events {
        writeln!(out, "{event}")?;
    }
    out.flush()
}
