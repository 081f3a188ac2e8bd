/**
 * The arithmetic of a gate, as SQL over its row.
 *
 * A declared rate is the limit of the service: at most `permits` requests in any window of `window_sec` seconds. Below one
 * request a second the window is longer, so that 1/3 a second is one request in three seconds. A limit of 2.5 a second means
 * two, since a window cannot hold half a request.
 *
 * GCRA lets at most burst + window / spacing requests into a window, so the spacing that keeps the limit is
 * window / (permits - burst + 1), and a larger burst costs throughput. The limit holds where the service counts, not only
 * where permits are granted: a request that is late moves closer to the next one. So the spacing also leaves `margin`
 * seconds in each window: a permit is used within half of that after its time or given up (take.ts), and the other half
 * is for the network. At burst 1 a gate reaches 1 / (1 + margin) of its limit: 93% below 20/s, 96% from there on. The
 * margin is larger at low rates, because there a permit that is given up is a larger share of all.
 *
 * A request of cost 3 counts as three. If the cost exceeds the burst, the request waits for the missing permits and then pays
 * for all of them, which is what keeps the limit: declare a burst of the highest cost to avoid the wait.
 */

/** The share of the declared rate that a quiet period adds after a cut. */
const RISE_SHARE = 0.1;
/** At the beginning of a warm-up. */
const COLD_SHARE = 0.5;
const MANY_PERMITS = 20;
const MARGIN_SEC = 0.07;
const MARGIN_SEC_OF_MANY = 0.04;

/** Half of the margin, for the time between a permit's due time and the request. */
export function toleranceMs(ratePerSec: number): number {
  return (ratePerSec < MANY_PERMITS ? MARGIN_SEC : MARGIN_SEC_OF_MANY) * 500;
}

export function seconds(from: string, to: string): string {
  return `extract(epoch from ${to} - ${from})::float8`;
}

/**
 * Joins for `from kernel.rate_gate g cross join clock c`, where `c.now` is the time:
 * `l.lead` seconds until the theoretical arrival time, negative in the past; `l.cooling` seconds of cooldown left;
 * `s.share` of the declared rate that is in force; `r.warm_from` the beginning of the present or last warm-up.
 */
export const PACE = `
  cross join lateral (
    select greatest(1, floor(g.rate_per_sec)) as permits, greatest(1, 1 / g.rate_per_sec) as window_sec,
           case when g.rate_per_sec < ${MANY_PERMITS} then ${MARGIN_SEC} else ${MARGIN_SEC_OF_MANY} end as margin,
           least(1, g.header_rate_per_sec / g.rate_per_sec) as cap,
           ${seconds("c.now", "g.tat")} as lead, ${seconds("c.now", "g.cooldown_until")} as cooling
  ) l
  cross join lateral (
    select least(l.cap, g.share + ${RISE_SHARE} * floor(
             greatest(0, ${seconds("greatest(g.share_at, g.cooldown_until)", "c.now")}) / g.rise_after_sec)) as risen,
           case when l.lead < -g.warmup_sec then c.now else greatest(g.warm_from, least(g.cooldown_until, c.now)) end as warm_from
  ) r
  cross join lateral (
    select greatest(least(g.floor_per_sec / g.rate_per_sec, l.cap), r.risen * case when g.warmup_sec = 0 then 1
             else ${COLD_SHARE} + ${1 - COLD_SHARE} * least(1, ${seconds("r.warm_from", "c.now")} / g.warmup_sec) end) as share
  ) s`;

/**
 * After `PACE`, for a request of `a.cost`: `p.spacing` seconds a permit, `p.start` seconds until the request may go,
 * `p.gap` seconds between such requests, `p.at_once`: how many such requests may go now. There is no burst below the declared rate.
 */
export const REQUEST_PACE = `
  cross join lateral (
    select case when s.share < 1 then 1 else g.burst end as burst,
           (l.window_sec + l.margin) / (l.permits - g.burst + 1) / s.share as spacing
  ) b
  cross join lateral (
    select b.spacing, greatest(0, l.lead + (a.cost - b.burst) * b.spacing) as start,
           (a.cost + greatest(0, a.cost - b.burst)) * b.spacing as gap,
           floor((b.burst - greatest(0, l.lead) / b.spacing) / a.cost) as at_once
  ) p`;
