// The contract with `crates/report/src/page`: what the program puts into the page. Times in microseconds end in `_us`, moments and spans in seconds in `_s`.

export type Status = 'VALID' | 'SUSPECT' | 'INVALID';

export interface Distribution {
  min: number | null; mean: number | null; p50: number | null; p90: number | null; p95: number | null;
  p99: number | null; p99_9: number | null; max: number | null; count: number;
}

export interface Reason { kind: string; severity: Status; message: string; help: string; seconds_affected: number | null; seconds: number }

export interface Threshold {
  metric: string; rule: string; unit: 'us' | 'fraction' | 'count' | 'per_second' | string;
  actual: number | null; limit: number; margin: number | null; ok: boolean;
}

export interface ErrorGroup {
  cause: string; phase: string; count: number; example: string | null; example_url: string | null; first_at_s: number | null;
}

export interface Row {
  load: string; protocol: string; method: string; url: string; ok: number; failed: number; interrupted: number;
  bytes_received: number; bytes_sent: number; latency_us: Distribution; status: Record<string, number>;
}

export type LoadKind = 'requests' | 'handshakes' | 'idle_connections' | 'streams' | 'websockets';

/** What all loads of one kind made. Kinds are never added up. */
export interface KindTotals {
  kind: LoadKind; loads: string[]; duration_s: number; ok: number; failed: number; interrupted: number; rate_per_s: number;
  asked: number | null; latency_us: Distribution;
}

export interface Handshakes { count: number; full: number; resumed: number; full_us: Distribution; resumed_us: Distribution }
export interface IdleConnections { opened: number; open_max: number; timeouts: number; closed_by_server: number; reset: number; broken: number; memory_bytes_each: number | null }

export interface Streams { events: number; events_per_s: number; first_event_us: Distribution; event_gap_us: Distribution; good: number | null; judged: number | null }
export interface WebSockets { messages_sent: number; messages_received: number; received_per_s: number; latency_us: Distribution; unanswered: number; mismatched: number }

export interface Summary {
  squall: string; name: string; started_at: string;
  verdict: { status: Status; reasons: Reason[]; notes: Reason[] };
  stopped_by: string; duration_s: number;
  totals: {
    kinds: KindTotals[]; handshakes?: Handshakes; idle_connections?: IdleConnections; streams?: Streams; websockets?: WebSockets;
    requests: number; ok: number; failed: number; interrupted: number; rate_per_s: number; requests_asked: number | null; requests_never_sent: number | null;
    retries: number; warmup_requests: number; bytes_received: number; bytes_sent: number;
    connections_opened: number; connections_reused: number; iterations?: number; iterations_dropped?: number;
  };
  latency_us: Distribution; failed_latency_us: Distribution; service_us: Distribution | null;
  phases_us: Record<string, Distribution>;
  status: Record<string, number>; errors: ErrorGroup[]; rows: Row[]; thresholds: Threshold[];
  generator: {
    cpu_us_per_request: number | null; schedule_lag_us_p99: number | null; busy: number; cpu_cores: number;
    stall_us_max: number; threads: number;
  };
  environment: Record<string, string>; plan: { loads: unknown[] }; parts: { kind: string; name: string; duration_s: number }[];
}

export interface Point { v: (number | null)[]; h: number[]; e?: Record<string, number>; w?: string[] }
export interface Series { columns: string[]; points: Point[] }
export interface Curve { name: string; points: [number, number][] }
export interface Monitor { source: string; name: string; unit: string; samples: [number, number][] }
export interface Mark { at_s: number; label: string; kind: string }
export interface Phases { blocked: number; connecting: number; tls_handshaking: number; sending: number; waiting: number; receiving: number }
/** All loads of a kind, a step, a load, a machine (one line for each kind of thing that it made), or a load on a machine. `received` are messages on WebSockets, or events of streams. */
export interface Part {
  kind: 'kind' | 'run' | 'step' | 'load' | 'machine' | 'share'; name: string; makes: LoadKind | null; load: string | null; machine: string | null;
  at_s: number; duration_s: number; status: Status | null; problem: string | null; rate_per_s: number;
  ok: number; failed: number; interrupted: number; asked: number; bytes_received: number; bytes_sent: number; connections_open_max: number;
  latency_us: Distribution; phases_mean_us: Phases | null; failures: Record<string, number>; busy: number | null; points: Point[];
  received?: number; received_latency_us?: Distribution;
}
/** A table of what only one kind of run has. The last `figure_count` columns are figures. */
export interface Block { title: string; is_headline: boolean; head: string[]; rows: string[][]; figure_count: number }
export interface ToolFigures { requests: number | null; failed: number | null; rate_per_s: number | null; latency_us: Record<string, number> }
export interface Tool { tool: string; load: string; machine: string; command: string[]; problem: string | null; figures: ToolFigures }

export interface RunPage {
  kind: 'run'; summary: Summary; asked_per_s: (number | null)[]; rule_labels: string[]; error_labels: string[]; cause_labels: Record<string, string>; warmup_s: number;
  curves: Curve[]; series: Series; monitors: Monitor[]; events: Mark[]; parts: Part[]; blocks: Block[]; tools: Tool[];
}

/** What a live page receives, once a second. `from`: the number of points that it should have; those after it are new. */
export interface LiveUpdate {
  page: RunPage; from: number; points: Point[]; generation: number; elapsed_s: number; goal_s: number | null; state: 'running' | 'draining' | 'ended';
}

export type Outcome = 'better' | 'worse' | 'same' | 'unknown';
export interface Estimate { low: number; value: number; high: number }

/** A figure of two groups: `ratio` is the second over the first; of a share, which may be zero, `difference` is the second less the first. */
export interface Finding {
  metric: string; unit: string; a: number[]; b: number[]; ratio: Estimate | null; difference: Estimate | null; p: number | null;
  effect: number | null; noise: number | null; words: string; outcome: Outcome;
}
export interface Pair { a: string; b: string; headline: string; outcome: Outcome; findings: Finding[]; notes: string[]; differences: string[] }
export interface ComparedRun { group: string; name: string; started_at: string; status: Status; curve: Curve; series: { x: number[]; rate: (number | null)[]; p50: (number | null)[]; p99: (number | null)[] } }
export interface ComparePage { kind: 'compare'; title: string; pairs: Pair[]; runs: ComparedRun[] }

export interface LevelLine {
  level: number; ok: number; failed: number; rate_per_s: number; bytes_per_s: number; latency_us: Distribution; status: Status;
  reasons: string[]; monitors: Record<string, number>; report: string | null;
}
export interface SweepLine { name: string; levels: LevelLine[]; knee: { level: number; words: string } | null }
export interface SweepPage { kind: 'sweep'; title: string; level_name: string; lines: SweepLine[]; monitor_names: string[] }

export interface Probe { rate: number; holds: boolean | null; words: string; status: Status; stage: string; figures: Record<string, number | null>; report: string | null }
export interface CapacityPage { kind: 'capacity'; title: string; answer: string; low: number | null; high: number | null; slo: string; probes: Probe[]; limit_words: string | null }

export interface IndexLine { href: string; name: string; started_at: string; duration_s: number; status: Status; thresholds: string; rate_per_s: number; failed: number; p50_us: number | null; p99_us: number | null }
export interface IndexPage { kind: 'index'; title: string; runs: IndexLine[] }

export type Page = RunPage | ComparePage | SweepPage | CapacityPage | IndexPage | { kind: 'live' };

/** One column of a series. */
export function column(series: Series, name: string): (number | null)[] {
  const idx = series.columns.indexOf(name);
  return series.points.map((point) => point.v[idx] ?? null);
}
