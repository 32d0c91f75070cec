//! Responses in the formats of the AWS services.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use super::request::Request;

/// Makes a response with this body.
pub(super) fn text(status: StatusCode, kind: &'static str, body: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    response
}

/// Makes a refusal in the format of the requested service.
pub(super) fn refusal(asked: &Request, code: &str, message: &str) -> Response<Body> {
    error(asked, StatusCode::BAD_REQUEST, code, message)
}

/// Makes an error in the format of the requested service.
pub(super) fn error(asked: &Request, status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let service = asked.action.split(':').next().unwrap_or_default();
    match service {
        "ec2" => {
            let body = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message>\
                 </Error></Errors><RequestID>stand-in</RequestID></Response>"
            );
            text(status, "text/xml", &body)
        }
        "iam" | "sts" => {
            let code = if code == "UnauthorizedOperation" { "AccessDenied" } else { code };
            let body = format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
            );
            text(status, "text/xml", &body)
        }
        _ => {
            let code = if code == "UnauthorizedOperation" { "AccessDeniedException" } else { code };
            text(
                status,
                "application/x-amz-json-1.1",
                &json!({"__type": code, "message": message}).to_string(),
            )
        }
    }
}

/// Makes an EC2 response with this content.
pub(super) fn whole(action: &str, content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
         <requestId>stand-in</requestId>{content}</{action}Response>"
    )
}
