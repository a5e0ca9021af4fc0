import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Context, Handler } from 'hono'
import { publicHeaders } from '../transport/shared-headers.ts'
import { type Env, hasCurrent } from './handler-basics.ts'
import { sendRefusal, unknownPath } from './http-refusals.ts'

type BoardFile = {
  readonly type: string
  readonly body: Uint8Array<ArrayBuffer>
  readonly gzipped: Uint8Array<ArrayBuffer>
  readonly etag: string
}

/** Settings that the page contains, because it needs them before it connects. */
export type BoardSettings = { readonly explorerUrl?: string | undefined; readonly demo: boolean }

/** The build puts the board here, whether the relay runs from the sources or from a build. */
const builtBoard = fileURLToPath(new URL('../../../../dist/board', import.meta.url))

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The page may load its own files and connect to its own origin. No text can become markup or a script. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const pageHeaders = {
  'cache-control': 'no-cache',
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
}
const assetHeaders = { 'cache-control': 'public, max-age=31536000, immutable' }

/** Path of the files of the page. It is in no document, because the names of the files change with every build. */
export const ASSET_PATTERN = '/assets/:file'

/** Serves the board from memory. Without a build, `/` redirects to the documentation. */
export function boardHandlers(settings: BoardSettings, folder = builtBoard) {
  const files = readBoard(folder, settings)
  const home: Handler<Env> = (c) =>
    files ? sendFile(c, files.page, pageHeaders) : c.body(null, 302, { ...publicHeaders, location: '/docs' })
  const asset: Handler<Env> = (c) => {
    const file = files?.assets.get(c.req.param('file') ?? '')
    if (file) return sendFile(c, file, assetHeaders)
    // The refusal is not cached, because during a deployment another process may already have this file.
    c.header('cache-control', 'no-store')
    return sendRefusal(c, unknownPath)
  }
  return { home, asset }
}

/** Null if the board was not built or cannot be read: streams and history work without it. */
function readBoard(folder: string, { explorerUrl, demo }: BoardSettings) {
  try {
    const page = readFileSync(join(folder, 'index.html'), 'utf8')
      .replace('%DEMO%', String(demo))
      .replace('%EXPLORER_URL%', () => escapeHtml(explorerUrl ?? ''))
    const names = readdirSync(join(folder, 'assets'))
    return {
      page: boardFile('text/html; charset=utf-8', Buffer.from(page)),
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
  const digest = createHash('sha256').update(content).digest('hex')
  return {
    type,
    body: new Uint8Array(content),
    gzipped: new Uint8Array(gzipSync(content, { level: 9 })),
    etag: `"${digest.slice(0, 32)}"`,
  }
}

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

function sendFile(c: Context<Env>, { type, body, gzipped, etag }: BoardFile, extra: Readonly<Record<string, string>>): Response {
  const isGzipped = acceptsGzip(c.req.header('accept-encoding') ?? '')
  // The ETag is weak because it stands for both encodings.
  const headers = { ...publicHeaders, ...extra, etag: `W/${etag}`, vary: 'accept-encoding' }
  if (hasCurrent(c, etag)) return c.body(null, 304, headers)
  return c.body(isGzipped ? gzipped : body, 200, {
    ...headers,
    'content-type': type,
    ...(isGzipped && { 'content-encoding': 'gzip' }),
  })
}

function acceptsGzip(acceptEncoding: string): boolean {
  const codings = acceptEncoding.toLowerCase().split(',')
  return codings.some((coding) => {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim())
    return name === 'gzip' && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
}
