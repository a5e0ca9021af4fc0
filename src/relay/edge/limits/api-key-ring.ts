import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { messageOf } from '../../../lib/http-fetch.ts'
import { digestOf, type KeyEntry, type KeyLimits, keyEntriesOfFile } from '../../config/api-key-settings.ts'
import type { Host } from '../../host.ts'

/** Time in which an access token can open connections. A connection that it opened does not end with it. */
const ACCESS_TOKEN_LIFE_MS = 60_000
/** Limit of the difference between the clocks of two processes that accept each other's access tokens. */
const CLOCK_SLACK_MS = 1_000
const FILE_CHECK_MS = 1_000
/** Number of hex digits in the public name of an API key. */
const NAME_CHARS = 16
/** Matches an access token: the public name of its API key, its end in seconds, and its signature. */
const ACCESS_TOKEN = /^t\.([0-9a-f]{16})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})$/
const CLIENT_PREFIX = 'key:'

/** Counts of an API key since it was read: requests, and those that were refused. */
type KeyUsage = { requests: number; refusals: number }

type RingKey = KeyEntry & { readonly usage: KeyUsage }

type ApiKeyRingOptions = Pick<Host, 'wallTime' | 'log'> & {
  readonly apiKeys: readonly KeyEntry[]
  readonly apiKeysFile: string | undefined
  /** Signs access tokens. Processes with one secret accept each other's access tokens. */
  readonly tokenSecret: string
  /** Called with the clients whose API keys were removed. */
  readonly onRevoked: (clients: ReadonlySet<string>) => void
}

/** The API keys that are valid now. A client with an API key is counted under a name that does not reveal the API key. */
export class ApiKeyRing {
  readonly #options: ApiKeyRingOptions
  #byClient: ReadonlyMap<string, RingKey> = new Map()
  #fileText: string | null = null
  readonly #timer: NodeJS.Timeout | null = null

  constructor(options: ApiKeyRingOptions) {
    this.#options = options
    this.#byClient = this.#ringOf(options.apiKeys)
    const { apiKeysFile: file } = options
    if (file === undefined) {
      options.log('api_keys_read', { keys: this.#byClient.size })
      return
    }
    // If the file cannot be read, nothing changes: a file that is written right now must not lock clients out.
    const onFailure = (failure: unknown) => {
      const reason = messageOf(failure)
      options.log('api_keys_unreadable', { reason })
    }
    const read = () => readFile(file, 'utf8').then((text) => this.#take(text))
    this.#timer = setInterval(() => read().catch(onFailure), FILE_CHECK_MS)
    try {
      this.#take(readFileSync(file, 'utf8'))
    } catch (failure) {
      onFailure(failure)
    }
  }

  /** Returns the client of an API key or access token; null if that is not valid. */
  clientOf(given: string): string | null {
    return this.clientOfApiKey(given) ?? this.#clientOfAccessToken(given)
  }

  /** Returns the client of a request that gives this API key or access token, and counts the request; null if that is not valid. */
  admit(given: string): string | null {
    const client = this.clientOf(given)
    const usage = client === null ? undefined : this.usageOf(client)
    if (usage) usage.requests += 1
    return client
  }

  /** Returns the client of an API key. Compares with every API key, so that the duration reveals nothing. */
  clientOfApiKey(given: string): string | null {
    const digest = digestOf(given)
    let found: string | null = null
    for (const [client, entry] of this.#byClient) if (timingSafeEqual(entry.digest, digest)) found = client
    return found
  }

  limitsOf(client: string): KeyLimits | undefined {
    return this.#byClient.get(client)?.limits
  }

  /** Counts a refused request, if the client is that of an API key. */
  countRefusal(client: string): void {
    const usage = this.usageOf(client)
    if (usage) usage.refusals += 1
  }

  usageOf(client: string): KeyUsage | undefined {
    return this.#byClient.get(client)?.usage
  }

  get clients(): ReadonlyMap<string, Pick<RingKey, 'name' | 'usage'>> {
    return this.#byClient
  }

  /** Makes an access token, which replaces the client's API key for a minute, in each process that has API key and secret. */
  createAccessToken(client: string): { readonly token: string; readonly expires_at: string } | null {
    if (!this.#byClient.has(client)) return null
    const endS = Math.floor((this.#options.wallTime() + ACCESS_TOKEN_LIFE_MS) / 1_000)
    const name = client.slice(CLIENT_PREFIX.length)
    return { token: `t.${name}.${endS}.${this.#proofOf(name, endS)}`, expires_at: new Date(endS * 1_000).toISOString() }
  }

  get maxClients(): number {
    return Math.max(0, ...[...this.#byClient.values()].map(({ limits }) => limits.clients ?? 0))
  }

  close(): void {
    if (this.#timer) clearInterval(this.#timer)
  }

  #clientOfAccessToken(given: string): string | null {
    const [, name = '', end = '', proof = ''] = ACCESS_TOKEN.exec(given) ?? []
    const client = CLIENT_PREFIX + name
    const leftMs = Number(end) * 1_000 - this.#options.wallTime()
    if (!this.#byClient.has(client) || leftMs <= 0 || leftMs > ACCESS_TOKEN_LIFE_MS + CLOCK_SLACK_MS) return null
    return timingSafeEqual(Buffer.from(proof), Buffer.from(this.#proofOf(name, Number(end)))) ? client : null
  }

  #proofOf(name: string, endS: number): string {
    return createHmac('sha256', this.#options.tokenSecret).update(`stocktape token ${name} ${endS}`).digest('base64url')
  }

  #take(text: string): void {
    if (text === this.#fileText) return
    const { apiKeys } = this.#options
    const current = this.#ringOf([...apiKeys, ...keyEntriesOfFile(text, apiKeys)])
    this.#fileText = text
    const revoked = new Set([...this.#byClient.keys()].filter((client) => !current.has(client)))
    this.#byClient = current
    this.#options.log('api_keys_read', { keys: current.size, removed: revoked.size })
    if (revoked.size > 0) this.#options.onRevoked(revoked)
  }

  /** Returns the keys by their clients. A key that was valid before keeps its counts. */
  #ringOf(entries: readonly KeyEntry[]): ReadonlyMap<string, RingKey> {
    return new Map(
      entries.map((entry) => {
        const client = CLIENT_PREFIX + digestOf(`name ${entry.digest.toString('hex')}`).toString('hex', 0, NAME_CHARS / 2)
        return [client, { ...entry, usage: this.usageOf(client) ?? { requests: 0, refusals: 0 } }]
      }),
    )
  }
}
