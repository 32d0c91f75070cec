//! Random failures of calls.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::answers::{error, text};
use super::request::Request;

/// The rate and the seed of random failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// The percentage of calls that are throttled, get an error page, fail, or lose their response after they took effect.
    pub percent: u64,
    /// The state of the random generator.
    pub seed: u64,
}

/// What happens to one call.
pub(super) enum Fate {
    Well,
    Throttled,
    Page,
    Failed,
    /// The call takes effect, and its response is lost.
    Lost,
}

impl Trouble {
    /// Draws what happens to the next call.
    pub(super) fn fate(&mut self) -> Fate {
        // xorshift64*: any spread of the numbers will do.
        let mut x = self.seed.max(1);
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.seed = x;
        let drawn = x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        if drawn % 100 >= self.percent {
            return Fate::Well;
        }
        match (drawn / 100) % 4 {
            0 => Fate::Throttled,
            1 => Fate::Page,
            2 => Fate::Failed,
            _ => Fate::Lost,
        }
    }
}

impl Fate {
    /// Returns the response to a call that has no effect. Returns `None` if the call is carried out.
    pub(super) fn instead(&self, asked: &Request) -> Option<Response<Body>> {
        Some(match self {
            Self::Throttled => error(
                asked,
                StatusCode::SERVICE_UNAVAILABLE,
                "RequestLimitExceeded",
                "Request limit exceeded.",
            ),
            Self::Page => {
                let page = "<html><body><h1>500 Internal Server Error</h1></body></html>";
                text(StatusCode::INTERNAL_SERVER_ERROR, "text/html", page)
            }
            Self::Failed => error(
                asked,
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalError",
                "An internal error has occurred.",
            ),
            Self::Well | Self::Lost => return None,
        })
    }
}
