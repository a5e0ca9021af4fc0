import { defaultTypes } from '../protocol/updates.ts'
import { closeCodesText } from './asyncapi.ts'
import { CAVEAT, openApi, serviceDescription } from './openapi.ts'
import { routes } from './route-table.ts'
import { messageTypes } from './schemas.ts'
import { ORIGIN, quickStartLines } from './snippets.ts'

/** What a language model needs to know to use the service well, by the convention of llms.txt. */
export function llms(): string {
  const { schemas } = openApi().components
  const describe = (type: string) => `- [${type}](/schemas/${type}.json): ${schemas[type]?.description}`
  const { updates, notices, requests } = messageTypes
  return `# stocktape

> ${serviceDescription} ${CAVEAT}

Every message is one JSON object with a \`type\`; the same bytes come over WebSocket, server-sent events and NDJSON. Ignore types and fields that you do not know.

## Rules

- A symbol is the key of a channel, a contract address the identity of a token. \`symbols\` takes symbols in any case, addresses, \`isin:…\`, or \`*\`.
- \`id\` is a position on the tape. Keep the last one and come back with \`since=<id>\` (or \`Last-Event-ID\`): nothing is missing and nothing comes twice. If it cannot be honoured a \`gap\` says so.
- \`key\` names an on-chain fact for ever. A message with \`stage\` \`preconfirmed\` is a promise that is still open: a \`seal\` that lists its key keeps it, a \`retract\` takes it back, one of the two always comes. An \`amend\` corrects its content.
- To hear only what is certain, ask for \`stage=sealed\`.
- Amounts are decimal strings and exact: do not read them as floats. \`null\` is unknown, never 0.
- \`amount\` is in tokens, \`shares\` are tokens × \`multiplier\`, \`reference_value\` is \`amount\` × \`nav.price\` in USD; the NAV holds the multiplier already, so never multiply shares by it.
- A NAV has an age and a state; \`stale\`, \`missing\` and \`invalid\` mean what they say.
- Without \`types\` you hear ${defaultTypes.length} of ${updates.length} types: all but \`approval\` and \`log\`.
- ${closeCodesText}

## Start here

Put the place that served this text where \`127.0.0.1:8080\` stands.

\`\`\`sh
${quickStartLines(ORIGIN.replace('http://', ''), 'AAPLc').slice(0, 2).join('\n')}
\`\`\`

## Routes

${routes.map(({ method, path, summary }) => `- \`${method.toUpperCase()} ${path}\`: ${summary}`).join('\n')}

## Documents

- [openapi.json](/openapi.json): the routes and their answers, OpenAPI 3.1
- [asyncapi.json](/asyncapi.json): the streams and their messages, AsyncAPI 3.0
- [docs](/docs): both as a page, with programs in TypeScript, Python and Go to copy

## Messages on the tape

${updates.map(describe).join('\n')}

## Messages of a connection

${notices.map(describe).join('\n')}

## Messages from a client

${requests.map(describe).join('\n')}
`
}
