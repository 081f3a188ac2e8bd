/**
 * What each field of a definition says, in one sentence: for editors (definitionJsonSchema) and for docs/sources.md. A test keeps
 * the list complete. `[]` stands for the entries of a list, `{}` for those of a map.
 */
export const DESCRIPTIONS: Readonly<Record<string, string>> = {
  source: "The name of the source in commands, plans, tables and metrics.",
  name: "The name for people.",
  description: "What the source is.",
  baseUrl: "The address that all paths begin with: https, without a query. `apply --base-url` points it elsewhere.",
  credentials: "The source's credentials, by name.",
  "credentials{}.env": "The environment variable that has the value.",
  "credentials{}.secret": "The named secret that has the value.",
  defaults: "A layer for all endpoints of the source.",
  endpoints: "The endpoints, by name.",
  schedules: "When the source is harvested by itself, by name.",

  "endpoints{}.role": "`SEARCH` lists records or ids; `DETAIL` answers the records of ids.",
  "endpoints{}.method": "The method of its requests.",
  "endpoints{}.path": "A template for the path below `baseUrl`. What it inserts is encoded.",
  "endpoints{}.default": "Plans that name no endpoint use this one.",
  "endpoints{}.requiresAuth": "Requests are never anonymous: a definition without authentication does not compile.",
  "endpoints{}.detail": "The endpoint that answers the records of ids, for `TwoPhase` and for the operation UPDATE.",
  "endpoints{}.overrides": "A layer between the source's defaults and the sections of this endpoint.",

  "schedules{}.endpoint": "The endpoint; without it, the default one.",
  "schedules{}.operation": "The operation of its plans.",
  "schedules{}.cron": "When a plan is made.",
  "schedules{}.timeZone": "The time zone of `cron`.",
  "schedules{}.params": "Values of the endpoint's parameters.",
  "schedules{}.priority": "The priority of its plans; smaller goes first.",

  enumerator:
    "How records are found: by windows of time, by a cursor of the source, by ids and details. `NoCount`: the whole list of a source that announces no total, so `response.totalPath` and `window.probe` are refused.",
  family: "Which answers mean an error, beside the rules of `classifier`.",
  params: "Parameters that a trigger may give. One that no template reads is sent by itself, at its location.",
  outputFields: "The columns of the table in the lake.",
  classifier: "What answers mean: the first rule that applies decides, then those of the family.",
  bodies: "Which bodies of responses are kept.",
  redact: "Secrets are removed from what is stored and logged. Cannot be turned off.",

  http: "How requests are made.",
  "http.headers": "Templates of headers, by name.",
  "http.query": "Templates of parameters, by name. A list is sent as a repeated parameter.",
  "http.form": "Templates of a form body, by name.",
  "http.json": "A JSON body; its strings are templates.",
  "http.connectTimeoutMs": "How long a connection may take.",
  "http.readTimeoutMs":
    "How long the source may send no byte of its answer. The whole request may take `connectTimeoutMs` and four times this, at most 10 minutes.",
  "http.compression": "Ask for compressed answers.",
  "http.redirects":
    "How many redirects are followed, for GET and HEAD to the same origin. Every request counts for so many more in the rate, because each may be redirected.",
  "http.proxy":
    "A proxy, as `http://host:port`, without a user or a password. https goes through a tunnel. One on a private address must be in `harvest.allowPrivate`.",
  "http.responseBytesMax": "Longer answers are refused.",

  auth: "How requests are authenticated.",
  "auth.type":
    "`API_KEY` sends the value as it is, `BEARER` as `Authorization: Bearer`. `OAUTH2` and `CUSTOM` are not supported yet.",
  "auth.location": "Where the credential is sent.",
  "auth.name": "The header, parameter or form field that has it.",
  "auth.credential": "A name of `credentials`.",
  "auth.required": "False: requests are anonymous while the credential has no value.",
  "auth.signingHook": "Only for `CUSTOM`.",

  pagination: "How the pages of a list are asked for.",
  "pagination.type":
    "What tells pages apart: `page.offset`, `page.number`, `page.token`, a URL, or the time of the last record.",
  "pagination.pageSize": "How many records a page has, as `page.size`.",
  "pagination.pageSizeMax": "The largest page that the source serves.",
  "pagination.maxPage":
    "The source serves no page after this one. A slice with more pages is divided, and INCOMPLETE where it cannot be.",
  "pagination.base": "The number of the first page, for `PAGE`.",
  "pagination.initial": "The first token, for `TOKEN`.",
  "pagination.tokenClass":
    "`REPEATABLE`: a page can be asked for again. `EXPIRING`: for a time. `SINGLE_USE`: only once, so a lost answer starts the slice again.",
  "pagination.tokenTtl": "How long a token of the class `EXPIRING` can be used.",
  "pagination.nextTokenPath": "Where the next token is. None, or an empty one, is the end.",
  "pagination.nextUrlPath": "Where the URL of the next page is. It has to stay on the origin of `baseUrl`.",
  "pagination.hasMorePath": "Where the source says whether there are more pages.",
  "pagination.nextQuery": "Templates of parameters that pages after the first send instead of `http.query`.",
  "pagination.countPath":
    "Where a page says how many records it stands for, for `OFFSET` and pages whose length the source decides. The next page begins so many further; without it, `pageSize` further.",
  "pagination.orderBy": "The order of the list, for readers and checks.",
  "pagination.stalledPages": "The slice is `INCOMPLETE` after this many pages in a row without a new id.",

  window: "How the source filters by time. An endpoint without a window is one slice.",
  "window.supportsUpdatedSince":
    "The source filters by time. If not, it has to be `monotone`, and the records outside of a window are left out by their time.",
  "window.watermarkKey": "The name of the time that the source filters on.",
  "window.granularity": "The smallest unit in which the source filters. Slices are whole multiples of it.",
  "window.format":
    "How `window.from`, `window.until` and `window.to` are written: `yyyy-MM-dd`, `iso`, `epochMs`, `epochSeconds`.",
  "window.timezone": "The time zone of the source's days.",
  "window.safetyLag": "A window is complete this long after its end.",
  "window.align": "Windows end at whole minutes, hours or days. By default what fits `granularity`.",
  "window.minWindow": "No slice is narrower. By default the unit of `granularity` and `align`.",
  "window.maxWindow": "No slice is wider. By default a day.",
  "window.earliest": "Nothing is older. The first plan without a window starts here; without it, one `maxWindow` ago.",
  "window.recordsMax":
    "The source answers no more records for one query. A slice beyond it is split in time, then by the ladder of `slicing`; where that is not enough, it is INCOMPLETE.",
  "window.sliceRecords": "Slices with more records are split in time.",
  "window.probe": "A request that counts the records of a slice before its first page.",
  "window.probe.query": "Templates of parameters that replace those of `http.query`.",
  "window.probe.totalPath": "Where the number is.",
  "window.probe.format": "The format of the answer.",
  "window.hint":
    "Where the first page hints at the number of records of a slice, for a source that announces no total. It makes slices smaller and is never compared with what came.",
  "window.hint.path": "Where it is in the answer: a JSONPath. Either this or `header`.",
  "window.hint.header": "The header that has it. Of `items 0-24/319` it is the number at the end.",
  "window.hint.unit": "Whether it counts records or pages of `pageSize`.",
  "window.monotone": "Records come in the order of the watermark, which never decreases for a record.",
  "window.order":
    "For a source that does not filter by time: how its list is sorted. Newest first (`descending`), it is read down to the window's beginning; `ascending`, up to its end.",
  "window.tolerance": "How many records may be missing from the announced total.",

  slicing: "How records are divided where windows of time are not enough.",
  "slicing.by":
    "What slices are: windows of time (`TIME`, the default where there is a window), ranges of pages (`PAGE`) or of ids (`ID`).",
  "slicing.pages": "`PAGE`: the pages of one slice. A list with more is divided into slices that run side by side.",
  "slicing.ids":
    "`ID`: the ids that there are, as a dimension: a range of numbers or days, a list of values, or prefixes. Its fields are those of a dimension of the ladder.",
  "slicing.ids.name": "The name of its fragment in templates: `parts.NAME`.",
  "slicing.ids.type": "As in the ladder.",
  "slicing.ids.fragment":
    "As in the ladder. With `size`, `VALUES` has `range.values`, the values of one slice, instead of `range.value`.",
  "slicing.ids.from": "The first number or day.",
  "slicing.ids.until": "The last number or day, included.",
  "slicing.ids.format": "How days are written in `range`; by default `yyyy-MM-dd`.",
  "slicing.ids.values": "`VALUES`: every id. `PREFIX`: what ids can begin with.",
  "slicing.ids.depth": "`PREFIX`: how often it is lengthened where a slice is over a cap.",
  "slicing.ids.rest": "As in the ladder.",
  "slicing.size": "`ID`: how many numbers, days or values one slice has.",
  "slicing.ladder":
    "Dimensions by which a slice of `minWindow` is divided that is over `recordsMax` or `maxPage`, in this order. Their parts have to add up to the whole, or the slice is INCOMPLETE.",
  "slicing.ladder[].name":
    "The name of its fragment in templates: `parts.NAME`, null in requests that are not divided by it.",
  "slicing.ladder[].type":
    "`DATE` and `NUMBER` are halved between `from` and `until`; `VALUES` has one part for each value; `PREFIX` lengthens a prefix by each of `values`.",
  "slicing.ladder[].fragment":
    "A template over `range.from`, `range.until` (inclusive) and `range.to` (exclusive), or `range.value`: what a part has as `parts.NAME`.",
  "slicing.ladder[].from": "The first day, such as `1900-01-01`, or the first number.",
  "slicing.ladder[].until": "The last day or number, included. No record may be outside.",
  "slicing.ladder[].format": "How days are written in `range`; by default `yyyy-MM-dd`.",
  "slicing.ladder[].values": "`VALUES`: every value. `PREFIX`: what a prefix can go on with.",
  "slicing.ladder[].depth": "`PREFIX`: how often it is lengthened; by default 8 times.",
  "slicing.ladder[].rest":
    "As `fragment`, for records that none of the values finds: a template over `range.values`, the values that it excludes, and for `PREFIX` `range.value`, the prefix that they lengthen.",

  response: "Where the records of an answer are.",
  "response.format": "The format of answers.",
  "response.itemsPath": "Where the list of records is. For XML, the path of the record's element.",
  "response.idPath": "The id, in a record.",
  "response.keyPaths":
    "Where the id alone is not unique: the key is the values of these paths, joined by `:`. Records without one of them are quarantined.",
  "response.updatedAtPath":
    "The time of the last change, in a record. Without it, what comes last is the newest version.",
  "response.updatedAtFormat": "How that time is written. `parts` is an object with Year, Month and Day.",
  "response.versionPath":
    "Orders versions of a record that have the same time: whole numbers, such as `3` or `v3`. Of others, what was asked for later is the newer one.",
  "response.totalPath": "Where the source announces the number of records. Without it, counts cannot be reconciled.",
  "response.deletedPath": "A record is deleted where this path has one of `deletedValues`.",
  "response.deletedValues": "What `deletedPath` has in a deleted record.",
  "response.requiredPaths": "Records without one of these are quarantined.",
  "response.ignoredPaths": "Parts of a record whose changes do not count, such as a search score.",
  "response.itemElements": "XML: the elements that are records, where `itemsPath` is the path of their parent.",

  retry: "How often and when a failed request is tried again.",
  "retry.maxAttempts": "How often a request is sent.",
  "retry.baseMs": "The first wait.",
  "retry.capMs": "The longest wait.",
  "retry.factor": "Each wait is this many times the one before.",
  "retry.jitter": "The random share of a wait.",
  "retry.retryableStatus": "Statuses that are retried beside 408, 425, 429 and all from 500.",

  rateLimit: "How fast requests are sent, over all processes.",
  "rateLimit.keys": "The gates of a request, from the widest. By default the name of the source.",
  "rateLimit.refillRatePerSec": "Requests a second.",
  "rateLimit.refillRateWithCredential":
    "The same while the credential has a value. Such requests have gates of their own: `ncbi:key` beside `ncbi`.",
  "rateLimit.burstCapacity":
    "Requests that may be sent at once after a pause, at most the rate. They count towards it, so a larger burst costs throughput.",
  "rateLimit.concurrency": "Requests that are under way at once, over all processes.",
  "rateLimit.warmupSec": "For so long after a pause or a cooldown, the rate rises from half to all of it.",
  "rateLimit.demoteRate": "What the rate is divided by when the source refuses.",
  "rateLimit.cost":
    "How many requests a request of this endpoint counts for in the rate, and what it costs of a quota in credits.",
  "rateLimit.quotas": "Limits over longer times.",
  "rateLimit.quotas[].unit":
    "What is counted. `usd_micros` is money in millionths of a dollar: a request costs `priceUsdMicros`, and what the source reports in `x-ratelimit-remaining-usd` replaces what was counted.",
  "rateLimit.quotas[].window": "Over what time.",
  "rateLimit.quotas[].limit": "How much of it.",
  "rateLimit.priceUsdMicros":
    "What a request costs of a quota in `usd_micros`, in millionths of a dollar. By default 1, because what the source reports is what counts.",
  "rateLimit.retryAfterOnSuccess":
    "Whether Retry-After on a good answer closes the gate, as it does by default. False: only on answers that are RATE_LIMITED or RETRY, for a source that sends the header with every answer.",
  "rateLimit.headerWindow":
    "The time that the limit in `X-RateLimit-Limit` or `X-Rate-Limit-Limit` counts, for a source that sends neither its interval nor a reset. Unset, such a header is ignored.",
  "rateLimit.providerRatePerSec": "What the provider allows. The rate may not exceed it.",

  batching: "How many ids and records go together.",
  "batching.idBatchSize": "Ids of one request for details.",
  "batching.idBatchSizeMax": "How many the source answers at most.",
  "batching.recordsPerStatement": "Records that one statement writes.",

  update: "How the operation UPDATE asks for known records again.",
  "update.staleAfter":
    "A record that nothing has brought or checked for so long is asked for again. Without it, only records that an earlier definition read are, and those of ids that a plan names.",
  "update.sliceRecords": "How many known records one slice covers.",
  "update.recordsMax": "How many known records one plan covers at most; the next plan goes on behind them.",
  "update.fillEmpty":
    "Members of a record, such as `$.abstract`. An update then writes only these, and only where the record has nothing there. Without it, an update replaces the record, as a harvest does.",

  expr: "What expressions may do.",
  "expr.allowedFunctions": "The functions that expressions may call.",
  "expr.nullPolicy": "A parameter without a value is left out (`omit`) or sent empty (`empty`).",

  budget:
    "Limits of a run, which is one attempt at a slice. A run that reaches one ends as PARTIAL, and the next run of the slice goes on where it stopped.",
  "budget.maxRequests": "After this many requests, retries included, a run asks for no further page.",
  "budget.maxDurationSec": "After this many seconds a run asks for no further page.",
  "budget.errorShareMax": "A run ends when a larger share of its requests has failed, counted from 20 requests on.",
  "budget.queuedTasksMax": "Tasks of this endpoint and operation that may be queued at once.",
  "budget.concurrency":
    "Tasks of this endpoint and operation that run at once, over all processes; half as many for BACKFILL and UPDATE.",

  landing:
    "The table that completed windows become, in the lake or in an engine. Without it, records are only kept in the database.",
  "landing.engine": "The engine of kind `postgres` that the table is in. Unset: the lake.",
  "landing.table": "Its name, and the name under which it arrives.",
  "landing.grain": "What a partition is.",

  "params[].name": "Its name, in the request and as `params.NAME`.",
  "params[].location": "Where it is sent, if no template reads it. `PATH`: the path reads it.",
  "params[].default": "Its value where the trigger gives none.",
  "params[].required": "Without a value there is no plan.",
  "params[].pattern": "A regular expression that the whole value has to match.",
  "params[].selects":
    "Whether its value decides which records come. `false`: all come, as with an address of contact; plans with it share watermark and table with those without.",
  "params[].expr": "An expression instead of the value, which it sees as `params.NAME`.",

  "outputFields[].name": "The name of the column.",
  "outputFields[].path": "Where the value is, in a record.",
  "outputFields[].type": "The type of the column. A value of another type becomes null.",
  "outputFields[].required": "Records without it are quarantined.",
  "outputFields[].enum": "Records with another value are quarantined.",

  "classifier[].when":
    "An expression over `status`, `headers`, `body` (null if it cannot be parsed), `text` and `attempt`.",
  "classifier[].action": "What follows.",
  "classifier[].reason": "Why, for people.",
  "classifier[].level":
    "`L1` passes by itself, `L2` is a mistake in the request, `L3` bad data, `L4` a refusal of access, which pauses the endpoint until a person resumes it.",
  "classifier[].cooldownSec": "How long the gate closes, for `RATE_LIMITED` without Retry-After.",
};
