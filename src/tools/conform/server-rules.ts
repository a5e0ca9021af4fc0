import { MESSAGE_BOUND_BYTES, requestScenarios } from './request-scenarios.ts'
import type { RuleText } from './rule-verdict.ts'
import type { ServerScenarios } from './server-checks.ts'
import { type JsonTransport, jsonTransports } from './server-stream.ts'
import { streamScenarios } from './stream-scenarios.ts'

/** Rule of the contract for a relay, as its clients see it. */
export type ServerRule = RuleText & {
  /** Transports for each of which the rule runs; absent if it chooses them itself. */
  readonly transports?: readonly JsonTransport[]
  readonly run: ServerScenarios[string]
}

const scenarios = { ...streamScenarios, ...requestScenarios }
type RuleName = keyof typeof scenarios

/** Section, sentence and transports of each rule, in the order in which the rules run. */
const texts: Readonly<Record<RuleName, readonly [section: string, sentence: string, transports?: readonly JsonTransport[]]>> = {
  beginning: ['§1', 'A stream begins with hello, subscribed, a snapshot of each token, and live.', jsonTransports],
  messages: [
    '§2',
    'Each message fits its schema, begins with the six common fields, and has a greater id than the one before.',
    jsonTransports,
  ],
  'id-lines': ['§1', 'SSE repeats each id that is not null in its id line, and names heartbeats alone.'],
  'same-bytes': ['§1', 'A message has the same bytes on every transport, live, replayed and from the history.'],
  chain: ['§2', 'prev names the message before of the same address and type, in the replay and live.', jsonTransports],
  join: ['§3', 'Nothing is lost or sent twice between the replay and the live messages.', jsonTransports],
  resume: ['§1', 'A stream after a position begins with the next message, and counts what it replays.', jsonTransports],
  'last-event-id': ['§6', 'Last-Event-ID wins over since, an empty one is ignored, and an unreadable one is a gap epoch.'],
  'gap-epoch': [
    '§3',
    'A position of another tape is a gap epoch, and the stream continues at the oldest position.',
    jsonTransports,
  ],
  'gap-ahead': ['§3', 'A position after the end of the tape is a gap ahead, and the stream continues at the end.', jsonTransports],
  since: ['§6', 'A start, a duration and a time begin at the first message that was written then or later.'],
  heartbeat: ['§3', 'A heartbeat counts the messages of the connection, and its id is where a resume continues.', jsonTransports],
  types: ['§6', 'A stream has the selected types; without types, all but approval and log.'],
  'value-filters': ['§6', 'A value filter applies to movements alone, and an unknown value never passes.'],
  symbols: ['§6', 'A stream has the messages of its tokens; an unknown symbol beside known ones is rejected with a suggestion.'],
  seals: ['§2', 'A seal comes after the messages of its keys, with their types and the digest of the keys.'],
  'sealed-view': ['§2', 'With stage=sealed facts come sealed, just before their seal, under its position.', jsonTransports],
  refusals: ['§5', 'A wrong request is refused with status, reason, a sentence, and the wrong parameter.'],
  requests: ['§6', 'subscribe, list, unsubscribe and ping are answered with their req; a wrong one with an error.'],
  'bad-messages': ['§7', 'The tenth bad message in a row closes the connection with 4000; a good one before it resets the count.'],
  'long-message': ['§7', `A message of more than ${MESSAGE_BOUND_BYTES} bytes closes the connection with 1009.`],
  history: ['§8', 'Pages, NDJSON and the descending order have the same messages; a key has all of its messages.'],
  snapshot: ['§9', 'A stream after as_of of /v1/snapshot has every message since, and none before.'],
  restart: ['§4', 'A server that stops says bye with a position, and after its start the stream continues there.', jsonTransports],
}

export const serverRules: readonly ServerRule[] = (Object.keys(texts) as RuleName[]).map((name) => {
  const [section, sentence, transports] = texts[name]
  return { name, section, sentence, run: scenarios[name], ...(transports && { transports }) }
})
