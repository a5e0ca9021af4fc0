import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import { asyncApi } from './asyncapi.ts'
import { about, CAVEAT, openApi } from './openapi.ts'
import { scriptFor, style } from './page-style.ts'
import { anchorOf, channels, line, type Markup, messages, operations, parts, refusalRows } from './reference-html.ts'
import { messageTypes } from './schemas.ts'
import { ORIGIN, snippets } from './snippets.ts'

/** The page at `/docs`: both documents and lines to copy, in one file that asks nobody else for anything. */

const script = scriptFor(ORIGIN)
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page's own style and script are all that may run, and it may listen to who served it. */
const policy = [
  "default-src 'none'",
  `style-src ${hashOf(style)}`,
  `script-src ${hashOf(script)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const http = openApi()
const streams = asyncApi()
const { taped, noticed, requested } = messageTypes
/** What stands among the schemas and is no message. */
const partNames = Object.keys(http.components.schemas).filter((name) => /^[A-Z]/.test(name))

const listOf = (title: string, links: readonly (readonly [href: string, text: string])[]): Markup =>
  html`<b>${title}</b><ul>${links.map(([href, text]) => html`<li><a href="#${href}">${text}</a></li>`)}</ul>`

const body = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>stocktape: what it tells, and how to hear it</title>
<link rel="icon" href="data:,">
<style>${raw(style)}</style>
</head>
<body>
<div class="house">
<nav>
${listOf('stocktape', [
  ['hear', 'Hear it'],
  ...http.tags.map(({ name }) => [anchorOf(name), name] as const),
  ['refused', 'Refusals'],
  ['channels', 'Channels'],
])}
${listOf(
  'on the tape',
  taped.map((type) => [`message-${type}`, type]),
)}
${listOf(
  'of a connection',
  noticed.map((type) => [`message-${type}`, type]),
)}
${listOf(
  'from a client',
  requested.map((type) => [`message-${type}`, type]),
)}
${listOf(
  'parts',
  partNames.map((name) => [`part-${name}`, name]),
)}
</nav>
<main>
<h1>stocktape</h1>
<p>${about}</p>
<p class="caveat">${CAVEAT}</p>
<p>For machines: <a href="/openapi.json">openapi.json</a>, <a href="/asyncapi.json">asyncapi.json</a>, <a href="/llms.txt">llms.txt</a>, and a JSON Schema of every message.</p>
<h2 id="hear">Hear it</h2>
${snippets.map(
  ({ id, title, about, source }) => html`<section id="hear-${id}"><h3>${title}</h3><p>${about}</p>
${line(`hear-${id}`, source.trimEnd())}</section>`,
)}
${operations(http)}
<h2 id="refused">Refusals</h2>
<p>Every refusal is an error record, with a sentence that says what is wrong and what to do.</p>
${refusalRows(http)}
<h2 id="channels">Channels</h2>
<span id="message-message"></span>
${channels(streams)}
<h2 id="message-update">On the tape</h2>
${messages(streams, taped)}
<h2>Of a connection</h2>
${messages(streams, noticed)}
<h2>From a client</h2>
${messages(streams, requested)}
<h2>On /rpc</h2>
${messages(streams, Object.keys(streams.channels.rpc.messages))}
<h2>Parts</h2>
${parts(http, partNames)}
</main>
</div>
<script>${raw(script)}</script>
</body>
</html>
`

export const page = { body: String(body), policy } as const
