/**
 * Checks of an installation that say what is wrong and what to do about it. Modules add their own checks; these are the
 * general ones.
 */

import { statfs } from "node:fs/promises";
import { type Db, sqlState } from "./data/db.ts";
import { latestVersion } from "./data/migrate.ts";
import { statement } from "./data/statement.ts";
import { nodeAdvice } from "./node-version.ts";
import type { Finding } from "./replies.ts";
import { messageOf } from "./text/message-of.ts";
import { counted } from "./text/sentences.ts";
import { outboxCheck } from "./work/outbox-check.ts";

export type { Finding };

export interface DoctorCheck {
  name: string;
  look(db: Db): Promise<Omit<Finding, "check">>;
}

const QUERY_CANCELED = "57014";
const DISK_FREE_BYTES_WARN = 1024 ** 3;
const CLOCK_SKEW_MS_WARN = 1_000;
const DEAD_ROWS_WARN = 100_000;
const OLDEST_TRANSACTION_SECONDS_WARN = 300;

/** Runs all checks; an exception of one is a finding too. */
export function examine(db: Db, checks: readonly DoctorCheck[]): Promise<Finding[]> {
  return Promise.all(
    checks.map(async ({ name, look }) => {
      try {
        return { check: name, ...(await look(db)) };
      } catch (error) {
        if (sqlState(error) === QUERY_CANCELED) {
          const found = "The check did not finish in time.";
          return {
            check: name,
            verdict: "warning" as const,
            found,
            advice: "Try again when the database is less busy.",
          };
        }
        const found = `The check itself failed: ${messageOf(error)}`;
        return { check: name, verdict: "broken" as const, found, advice: "See the server's log." };
      }
    }),
  );
}

export function kernelChecks(deps: { version: string; dataDir: string | undefined }): DoctorCheck[] {
  return [
    versionCheck(deps.version),
    databaseCheck,
    schemaCheck,
    diskCheck(deps.dataDir),
    clockCheck,
    bloatCheck,
    transactionCheck,
    processCheck,
    outboxCheck,
  ];
}

function versionCheck(version: string): DoctorCheck {
  return {
    name: "version",
    async look() {
      const found = `Millrace ${version} on Node ${process.versions.node}.`;
      const advice = nodeAdvice();
      return advice === undefined ? { verdict: "ok", found } : { verdict: "broken", found, advice };
    },
  };
}

const DATABASE = statement<{ version: string; fsync: string; synchronous_commit: string }>(
  "kernel.doctor.database",
  `select current_setting('server_version') as version, current_setting('fsync') as fsync,
          current_setting('synchronous_commit') as synchronous_commit`,
);
const databaseCheck: DoctorCheck = {
  name: "database",
  async look(db) {
    const started = performance.now();
    const [row] = await db.read(DATABASE);
    const latencyMs = Math.round((performance.now() - started) * 10) / 10;
    const found = `PostgreSQL ${row?.version} answered in ${latencyMs} ms, fsync ${row?.fsync}, synchronous_commit ${row?.synchronous_commit}.`;
    if (row?.fsync === "on" && row.synchronous_commit !== "off") return { verdict: "ok", found };
    return {
      verdict: "warning",
      found,
      advice: "Turn fsync and synchronous_commit on; without them a power failure can lose acknowledged writes.",
    };
  },
};

const SCHEMA = statement<{ version: number }>(
  "kernel.doctor.schema",
  "select max(version) as version from kernel.schema_migration",
);
const schemaCheck: DoctorCheck = {
  name: "schema",
  async look(db) {
    const [[row], known] = await Promise.all([db.read(SCHEMA), latestVersion()]);
    if (row?.version === known)
      return { verdict: "ok", found: `The schema is at version ${known}, as this build expects.` };
    const found = `The schema is at version ${row?.version}, this build expects ${known}.`;
    return {
      verdict: "broken",
      found,
      advice: "Run `millrace migrate` with the newest version, then restart the older processes.",
    };
  },
};

function diskCheck(dataDir: string | undefined): DoctorCheck {
  return {
    name: "disk",
    async look() {
      if (dataDir === undefined)
        return { verdict: "ok", found: "The database is on another server, so its disk is not checked." };
      const { bavail, bsize } = await statfs(dataDir);
      const free = bavail * bsize;
      const found = `${(free / 1024 ** 3).toFixed(1)} GiB are free under ${dataDir}.`;
      if (free >= DISK_FREE_BYTES_WARN) return { verdict: "ok", found };
      return { verdict: "warning", found, advice: "Free some space: Postgres stops when the disk is full." };
    },
  };
}

const CLOCK = statement<{ now_ms: number }>(
  "kernel.doctor.clock",
  "select extract(epoch from clock_timestamp()) * 1000 as now_ms",
);
const clockCheck: DoctorCheck = {
  name: "clock",
  async look(db) {
    const before = Date.now();
    const [row] = await db.read(CLOCK);
    const after = Date.now();
    // The database read its clock between the two; only a difference outside that interval is skew.
    const theirs = Number(row?.now_ms);
    const skewMs = Math.round(theirs < before ? before - theirs : Math.max(0, theirs - after));
    const found = `This machine's clock and the database's differ by ${skewMs} ms.`;
    if (skewMs < CLOCK_SKEW_MS_WARN) return { verdict: "ok", found };
    return {
      verdict: "warning",
      found,
      advice: "Synchronise the clocks (NTP). Leases are safe, but the times of logs will not match.",
    };
  },
};

const BLOAT = statement<{ name: string; live: number; dead: number }>(
  "kernel.doctor.bloat",
  `select schemaname || '.' || relname as name, n_live_tup::float8 as live, n_dead_tup::float8 as dead
   from pg_stat_user_tables where n_dead_tup > $1 and n_dead_tup > n_live_tup * 0.2 order by n_dead_tup desc limit 5`,
);
const bloatCheck: DoctorCheck = {
  name: "bloat",
  async look(db) {
    const tables = await db.read(BLOAT, [DEAD_ROWS_WARN]);
    if (tables.length === 0) return { verdict: "ok", found: "No table has many dead rows." };
    const found = `Many dead rows in ${tables.map(({ name, dead, live }) => `${name} (${dead} dead, ${live} live)`).join(", ")}.`;
    return {
      verdict: "warning",
      found,
      advice: "Check that autovacuum runs and that no old transaction holds it back.",
    };
  },
};

const OLDEST_TRANSACTION = statement<{ pid: number; application: string; seconds: number }>(
  "kernel.doctor.oldest_transaction",
  `select pid, application_name as application, extract(epoch from now() - xact_start)::float8 as seconds
   from pg_stat_activity where xact_start is not null and backend_type = 'client backend' order by xact_start limit 1`,
);
const transactionCheck: DoctorCheck = {
  name: "transactions",
  async look(db) {
    const [oldest] = await db.read(OLDEST_TRANSACTION);
    if (!oldest || oldest.seconds < OLDEST_TRANSACTION_SECONDS_WARN) {
      return { verdict: "ok", found: "No transaction has been open for long." };
    }
    const found = `Process ${oldest.pid} (${oldest.application}) has had a transaction open for ${Math.round(oldest.seconds)} s.`;
    return {
      verdict: "warning",
      found,
      advice: `Vacuum cannot remove dead rows of any table while it is open. End it: select pg_terminate_backend(${oldest.pid}).`,
    };
  },
};

// The session of a process that was stopped is closed, and does not count.
const PROCESSES = statement<{ process: string; roles: string[]; expired: boolean }>(
  "kernel.doctor.processes",
  "select process, roles, expires_at <= now() as expired from kernel.session where closed_at is null order by id",
);
const WITHOUT_ROLE = {
  scheduler:
    "Timers do not run, and nodes and shards of crashed workers stay claimed: start a process with the role `scheduler`.",
  worker: "Work that is queued is not done: start a process with the role `worker`.",
};
const processCheck: DoctorCheck = {
  name: "processes",
  async look(db) {
    const processes = await db.read(PROCESSES);
    const alive = processes.filter(({ expired }) => !expired);
    const found = `${alive.length} alive: ${alive.map(({ process, roles }) => `${process} (${roles.join(", ")})`).join("; ") || "none"}.`;
    const missing = (["scheduler", "worker"] as const).filter(
      (role) => !alive.some(({ roles }) => roles.includes(role)),
    );
    if (alive.length > 0 && missing.length > 0) {
      return {
        verdict: "warning",
        found: `${found} None has the role ${missing.map((role) => `\`${role}\``).join(" or ")}.`,
        advice: missing.map((role) => WITHOUT_ROLE[role]).join(" "),
      };
    }
    const expired = processes.length - alive.length;
    if (expired === 0) return { verdict: "ok", found };
    return {
      verdict: "warning",
      found: `${found} ${counted(expired, "process", "processes")} expired in the last hour, without a graceful stop.`,
      advice:
        "They were killed, suspended or disconnected from the database. The running processes take over their work.",
    };
  },
};
