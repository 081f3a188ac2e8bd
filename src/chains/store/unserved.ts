/** SQL conditions for the live node `l`: the role that it waits for. Runs, nodes and the doctor say the same of it. */

/** Its worker is lost, and a process with the role `scheduler` has not reclaimed it yet. */
export const IS_LOST = `(l.state = 'leased' and not exists (
            select from kernel.session s where s.id = l.session_id and s.expires_at > now()))`;
export const WAITS_FOR_WORKER = "l.state = 'ready'";
export const WAITS_FOR_SCHEDULER = `(l.state = 'delayed' or ${IS_LOST})`;
