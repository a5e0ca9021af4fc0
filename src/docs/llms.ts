import { quickStartLines } from '../protocol/routes.ts'
import { defaultTypes, namedTypes } from '../protocol/updates.ts'
import { messageTypes } from './json-schemas.ts'
import { openApi } from './openapi.ts'
import { type Recipe, recipes } from './recipes.ts'
import { describedRoutes } from './route-texts.ts'
import { CAVEAT, closeCodesText, ORIGIN, serviceDescription } from './snippets.ts'

export function llms(): string {
  const { schemas } = openApi().components
  const describe = (type: string) => `- [${type}](/schemas/${type}.json): ${schemas[type]?.description}`
  const { updates, notices, requests } = messageTypes
  return `# stocktape

> ${serviceDescription} ${CAVEAT}

Every message is one JSON object with a \`type\`; its bytes are the same over WebSocket, server-sent events and NDJSON. Ignore types and fields that you do not know.

## Rules

- A contract address is the identity of a token; its symbol may change. \`symbols\` takes symbols in upper or lower case, addresses, \`isin:…\`, or \`*\`.
- \`id\` is a position on the tape. Keep the last one and reconnect with \`since=<id>\` (or \`Last-Event-ID\`): no message is lost or repeated. If that is not possible, a \`gap\` says so.
- \`key\` is the permanent name of an on-chain fact. A message with \`stage\` \`preconfirmed\` is open until a \`seal\` lists its key or a \`retract\` says that it did not happen; one of the two always follows. An \`amend\` corrects its content.
- For sealed facts only, use \`stage=sealed\`.
- Amounts are exact decimal strings: do not parse them as floats. \`null\` means unknown, never 0.
- \`amount\` is in tokens, \`shares\` are tokens × \`multiplier\`, \`reference_value\` is \`amount\` × \`nav.price\` in USD; the NAV already includes the multiplier, so never multiply shares by it.
- A NAV has an age and a state: \`fresh\`, \`stale\` (older than \`stale_after_s\`), \`missing\` or \`invalid\` (both without a price).
- A \`quote\` is the price of a token in a pool on the chain, in a currency that is taken as one dollar. Its \`basis\` is a \`premium\` only against a fresh NAV that is not frozen; against a held NAV it is a \`drift\`. Never multiply the price or the NAV by the multiplier.
- Without \`types\` you receive ${defaultTypes.length} of ${updates.length} types: all except ${namedTypes.map((type) => `\`${type}\``).join(' and ')}.
- ${closeCodesText}

## Start here

Replace \`127.0.0.1:8080\` with the host that served this text.

\`\`\`sh
${quickStartLines(ORIGIN.replace('http://', ''), 'AAPLc').slice(0, 2).join('\n')}
\`\`\`

## Recipes

${recipes.map(recipeText).join('\n\n')}

## Routes

${describedRoutes.map(({ method, path, summary }) => `- \`${method.toUpperCase()} ${path}\`: ${summary}`).join('\n')}

## Documents

- [openapi.json](/openapi.json): the routes and their answers, OpenAPI 3.1
- [asyncapi.json](/asyncapi.json): the streams and their messages, AsyncAPI 3.0
- [contract](/docs/contract): what a client may rely on, in full
- [types.ts](/types.ts): every message as a TypeScript type
- [docs](/docs): both as a page, with programs to copy in TypeScript, Python and Go

## Messages on the tape

${updates.map(describe).join('\n')}

## Messages of a connection

${notices.map(describe).join('\n')}

## Messages from a client

${requests.map(describe).join('\n')}
`
}

const recipeText = ({ title, paragraphs, source }: Recipe): string =>
  [`### ${title}`, ...paragraphs, ...(source === undefined ? [] : [`\`\`\`\n${source}\n\`\`\``])].join('\n\n')
