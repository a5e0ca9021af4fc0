import { createHash } from 'node:crypto'
import { readme } from '../protocol/contract-examples.ts'
import { asyncApi } from './asyncapi.ts'
import { chartLibrary, chartsPage } from './charts-page.ts'
import { page } from './docs-page.ts'
import { publishedSchemas } from './json-schemas.ts'
import { llms } from './llms.ts'
import { openApi } from './openapi.ts'
import { typescriptTypes } from './typescript-types.ts'

const JSON_TYPE = 'application/json'
const SCHEMA_TYPE = 'application/schema+json'
const ETAG_BYTES = 16

/** Every document by its path. A document does not change while the process runs, so it is made once. */
export const documents = new Map([
  ['/openapi.json', documentOf(JSON_TYPE, prettyJson(openApi()))],
  ['/asyncapi.json', documentOf(JSON_TYPE, prettyJson(asyncApi()))],
  ['/llms.txt', documentOf('text/plain; charset=utf-8', llms())],
  ['/docs', documentOf('text/html; charset=utf-8', page.body, page.policy)],
  ['/types.ts', documentOf('text/plain; charset=utf-8', typescriptTypes())],
  ['/docs/charts', documentOf('text/html; charset=utf-8', chartsPage.body, chartsPage.policy)],
  ['/docs/lightweight-charts.js', documentOf('text/javascript; charset=utf-8', chartLibrary)],
  ['/docs/contract', documentOf('text/plain; charset=utf-8', readme)],
  ...[...publishedSchemas()].map(
    ([type, schema]) => [`/schemas/${type}.json`, documentOf(SCHEMA_TYPE, prettyJson(schema))] as const,
  ),
])

function documentOf(type: string, body: string, contentSecurityPolicy: string | null = null) {
  const digest = createHash('sha256').update(body).digest('hex')
  return { type, bytes: new TextEncoder().encode(body), etag: `"${digest.slice(0, 2 * ETAG_BYTES)}"`, contentSecurityPolicy }
}

/** Indents the document, because people read it too. */
function prettyJson(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
