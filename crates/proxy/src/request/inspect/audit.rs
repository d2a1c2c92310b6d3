//! The audit log's entry of a request.

use tidegate_telemetry::log::{Entry, Keep, Keeps};
use tidegate_telemetry::record::WafVerdict;
use tidegate_waf::inspection::{AuditClient, AuditContext, AuditKeeps, Inspection};
use tidegate_waf::seclang::setting::Switch;

use super::{Exchange, Inspecting};

/// Who has written the log.
const PRODUCER: &str = concat!("Tidegate/", env!("CARGO_PKG_VERSION"));

/// A request that goes to the audit log.
pub(in crate::request) struct Audit<'a> {
    inspection: &'a Inspection,
    exchange: &'a Exchange,
}

impl<'a> Audit<'a> {
    /// The entry of a request, if its rules want one.
    pub(in crate::request) fn of(exchange: &'a Exchange) -> Option<Self> {
        let inspecting: &Inspecting = exchange.inspecting.as_deref()?;
        let inspection = inspecting.inspection.as_ref()?;
        let is_audited = inspection.is_audited(exchange.record.status);
        is_audited.then_some(Self { inspection, exchange })
    }
}

impl std::fmt::Debug for Audit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Entry for Audit<'_> {
    fn write(&self, keeps: &Keeps<'_>, out: &mut Vec<u8>) {
        let record = &self.exchange.record;
        let is_stopped = match record.waf.verdict {
            WafVerdict::Deny | WafVerdict::Challenge | WafVerdict::Drop | WafVerdict::Redirect => {
                true
            }
            WafVerdict::None
            | WafVerdict::Pass
            | WafVerdict::WouldDeny
            | WafVerdict::Skipped
            | WafVerdict::Refused
            | WafVerdict::Failed => false,
        };
        let fields = self.exchange.request.headers.iter().map(|field| field.name);
        let dropped: Vec<&[u8]> = fields.filter(|name| keeps.field(name) == Keep::No).collect();
        let switch = |is_on: bool| if is_on { Switch::On } else { Switch::Off };
        let keeps = AuditKeeps {
            client: match keeps.address() {
                Keep::Yes => AuditClient::Whole,
                Keep::No => AuditClient::Masked(keeps.client.unwrap_or_default()),
            },
            query: switch(keeps.query == Keep::Yes),
            dropped_fields: &dropped,
        };
        let context = AuditContext {
            epoch_ms: record.began_millis(),
            status: record.status,
            producer: PRODUCER,
            intercepted: switch(is_stopped),
            keeps,
        };
        self.inspection.write_audit(context, out);
    }
}
