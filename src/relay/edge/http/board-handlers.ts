import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context, Handler } from 'hono'
import { unknownPath } from '../limits/refusals.ts'
import { RepeatedBody, varyHeaders } from '../transport/gzip.ts'
import { sendRefusal } from '../transport/send-refusal.ts'
import { publicHeaders } from '../transport/shared-headers.ts'
import { acceptEncodingOf, type Env, etagOf, hasCurrent, sendBytes } from './handler-basics.ts'

type BoardFile = { readonly type: string; readonly body: RepeatedBody; readonly etag: string }

/** Settings that the page contains, because it needs them before it connects. */
export type BoardSettings = { readonly explorerUrl?: string | undefined; readonly demo: () => boolean }

/** The build puts the board here, whether the relay runs from the sources or from a build. */
const builtBoard = fileURLToPath(new URL('../../../../dist/board', import.meta.url))

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** The page may load its own files and connect to its own origin. No text can become markup or a script. */
const contentSecurityPolicy = (frameAncestors: "'none'" | '*'): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

const pageHeaders = (frameAncestors: "'none'" | '*') => ({
  'cache-control': 'no-cache',
  'content-security-policy': contentSecurityPolicy(frameAncestors),
  'cross-origin-opener-policy': 'same-origin',
})
/** The files of the pages. Any page may put the card of a symbol into a frame. */
const pages = {
  home: { file: 'index.html', headers: pageHeaders("'none'") },
  embed: { file: 'embed/index.html', headers: pageHeaders('*') },
} as const
const assetHeaders = { 'cache-control': 'public, max-age=31536000, immutable' }

/** Path of the files of the page. It is in no document, because the names of the files change with every build. */
export const ASSET_PATTERN = '/assets/:file'

/** Serves the board from memory. Without a build, its pages redirect to the documentation. */
export function boardHandlers(settings: BoardSettings, folder = builtBoard) {
  const files = readBoard(folder, settings)
  const page =
    (name: keyof typeof pages): Handler<Env> =>
    (c) =>
      files
        ? sendFile(c, files[name][settings.demo() ? 'demo' : 'real'], pages[name].headers)
        : c.body(null, 302, { ...publicHeaders, location: '/docs' })
  const asset: Handler<Env> = (c) => {
    const file = files?.assets.get(c.req.param('file') ?? '')
    if (file) return sendFile(c, file, assetHeaders)
    // The refusal is not cached, because during a deployment another process may already have this file.
    c.header('cache-control', 'no-store')
    return sendRefusal(c, unknownPath(c.req.path))
  }
  return { home: page('home'), embed: page('embed'), asset }
}

/** Null if the board was not built or cannot be read: streams and history work without it. */
function readBoard(folder: string, { explorerUrl }: BoardSettings) {
  try {
    const pageOf = (name: keyof typeof pages) => {
      const html = readFileSync(join(folder, pages[name].file), 'utf8')
      const withSettings = (isDemo: boolean) => {
        const page = html.replaceAll('%DEMO%', String(isDemo)).replace('%EXPLORER_URL%', () => escapeHtml(explorerUrl ?? ''))
        return boardFile('text/html; charset=utf-8', Buffer.from(page))
      }
      return { demo: withSettings(true), real: withSettings(false) }
    }
    const names = readdirSync(join(folder, 'assets'))
    return {
      home: pageOf('home'),
      embed: pageOf('embed'),
      assets: new Map<string, BoardFile>(
        names.map((name) => [
          name,
          boardFile(types[extname(name)] ?? 'application/octet-stream', readFileSync(join(folder, 'assets', name))),
        ]),
      ),
    }
  } catch (failure) {
    if (failure instanceof Error && 'syscall' in failure) return null
    throw failure
  }
}

function boardFile(type: string, content: Buffer): BoardFile {
  return { type, body: new RepeatedBody(new Uint8Array(content)), etag: etagOf(createHash('sha256').update(content)) }
}

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

async function sendFile(
  c: Context<Env>,
  { type, body, etag }: BoardFile,
  extra: Readonly<Record<string, string>>,
): Promise<Response> {
  const head = { ...publicHeaders, ...extra, etag }
  if (hasCurrent(c, etag)) return c.body(null, 304, { ...head, ...varyHeaders })
  const { bytes, headers } = await body.for(acceptEncodingOf(c), { level: 9 })
  return sendBytes(c, bytes, { ...head, ...headers, 'content-type': type })
}
