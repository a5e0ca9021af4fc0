import { html, raw } from 'hono/html'
import { asyncApi } from './asyncapi.ts'
import { messageTypes } from './json-schemas.ts'
import { openApi } from './openapi.ts'
import { cspHashOf, headOf, policyFor, script } from './page-assets.ts'
import { recipes } from './recipes.ts'
import { anchorOf, channels, copyBlock, type Markup, messages, operations, parts, refusalRows } from './reference-html.ts'
import { CAVEAT, serviceDescription, snippets } from './snippets.ts'

const contentSecurityPolicy = policyFor(cspHashOf(script))

const openApiDocument = openApi()
const asyncApiDocument = asyncApi()
const { updates, notices, requests } = messageTypes
/** Schemas whose names begin with a capital letter are not messages. */
const schemaNames = Object.keys(openApiDocument.components.schemas).filter((name) => /^[A-Z]/.test(name))

type Link = readonly [href: string, text: string]

const linksTo = (kind: string, names: readonly string[]): readonly Link[] => names.map((name) => [`${kind}-${name}`, name])

const linkList = (title: string, links: readonly Link[]): Markup =>
  html`<b>${title}</b><ul>${links.map(([href, text]) => html`<li><a href="#${href}">${text}</a></li>`)}</ul>`

const body = html`${headOf('documentation')}
</head>
<body>
<div class="layout">
<nav>
${linkList('stocktape', [
  ['listen', 'Get started'],
  ['recipes', 'Recipes'],
  ...openApiDocument.tags.map(({ name }) => [anchorOf(name), name] as const),
  ['refused', 'Refusals'],
  ['channels', 'Channels'],
])}
${linkList('on the tape', linksTo('message', updates))}
${linkList('of a connection', linksTo('message', notices))}
${linkList('from a client', linksTo('message', requests))}
${linkList('shared types', linksTo('part', schemaNames))}
</nav>
<main>
<h1>stocktape</h1>
<p>${serviceDescription}</p>
<p class="caveat">${CAVEAT}</p>
<p>For machines: <a href="/openapi.json">openapi.json</a>, <a href="/asyncapi.json">asyncapi.json</a>, <a href="/llms.txt">llms.txt</a>, <a href="/types.ts">types.ts</a>, and a JSON Schema of every message and of <a href="/schemas/message.json">all of them</a>. <a href="/docs/contract">The contract</a> says what a client may rely on. <a href="/docs/charts">Charts</a> draws bars, and shows how.</p>
<h2 id="listen">Get started</h2>
${snippets.map(
  ({ id, title, description, source }) => html`<section id="listen-${id}"><h3>${title}</h3><p>${description}</p>
${copyBlock(`listen-${id}`, source.trimEnd())}</section>`,
)}
<h2 id="recipes">Recipes</h2>
${recipes.map(
  ({ id, title, paragraphs, source }) => html`<section id="recipe-${id}"><h3>${title}</h3>
${paragraphs.map((text) => html`<p>${text}</p>`)}
${source === undefined ? '' : copyBlock(`recipe-${id}`, source)}</section>`,
)}
${operations()}
<h2 id="refused">Refusals</h2>
<p>Every refusal is an error record, with a sentence that names what is wrong and what to do.</p>
${refusalRows()}
<h2 id="channels">Channels</h2>
<span id="message-message"></span>
${channels(asyncApiDocument)}
<h2 id="message-update">Messages on the tape</h2>
${messages(asyncApiDocument, updates)}
<h2>Messages of a connection</h2>
${messages(asyncApiDocument, notices)}
<h2>Messages from a client</h2>
${messages(asyncApiDocument, requests)}
<h2>Messages on /rpc</h2>
${messages(asyncApiDocument, Object.keys(asyncApiDocument.channels.rpc.messages))}
<h2>Shared types</h2>
${parts(openApiDocument, schemaNames)}
</main>
</div>
<script>${raw(script)}</script>
</body>
</html>
`

/** The page at `/docs`: the OpenAPI and AsyncAPI documents and code to copy, in one file that loads nothing else. */
export const page = { body: String(body), policy: contentSecurityPolicy } as const
