-- Prints what wrk measured as one line of JSON. A script without request() leaves wrk's requests
-- prepared once, so this costs the load generator nothing while it runs.
function done(summary, latency, _)
    local errors = summary.errors
    io.write(string.format(
        '{"requests":%d,"bytes":%d,"duration_us":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"p50_us":%d,"p99_us":%d,"max_us":%d}\n',
        summary.requests, summary.bytes, summary.duration,
        errors.connect, errors.read, errors.write, errors.status, errors.timeout,
        latency:percentile(50), latency:percentile(99), latency.max))
end
