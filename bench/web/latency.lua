-- One line that a program can read: requests a second, and the latencies that most and nearly all had.
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local ms = function(part) return string.format("%.2f", latency:percentile(part) / 1000) end
  io.write(string.format(
    'RESULT {"requests": %d, "rps": %d, "errors": %d, "p50ms": %s, "p95ms": %s, "p99ms": %s}\n',
    summary.requests, math.floor(summary.requests / (summary.duration / 1000000)), failed, ms(50), ms(95), ms(99)))
end
