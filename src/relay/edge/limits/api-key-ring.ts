import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { digestOf, type KeyEntry, type KeyLimits, keyEntriesOfFile } from '../../config/key-settings.ts'

/** How long a token opens connections. Those that are open stay. */
const TOKEN_LIFE_MS = 60_000
/** A process whose clock is behind that of the one that made a token accepts it all the same. */
const CLOCK_SLACK_MS = 1_000
/** How often the file is read. */
const FILE_CHECK_MS = 1_000
/** Hex digits of a key's public name. */
const NAME_CHARS = 16
/** A token: the public name of its key, its end in seconds, and the proof. */
const TOKEN = /^t\.([0-9a-f]{16})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})$/

type KeyRingOptions = {
  /** The keys of the settings. */
  readonly apiKeys: readonly KeyEntry[]
  /** A file with more of them. */
  readonly apiKeysFile: string | undefined
  /** Proves tokens. Processes whose clients change between them share it. */
  readonly tokenSecret: string
  readonly wallTime: () => number
  readonly warn: (kind: string, detail: unknown) => void
  /** Called with the names of the clients whose keys are gone. */
  readonly onRevoked: (clients: ReadonlySet<string>) => void
}

/** The keys that are valid now. A client with a key counts by the key, under a name that says nothing about it. */
export class KeyRing {
  readonly #options: KeyRingOptions
  #byClient: ReadonlyMap<string, KeyEntry>
  #fileText: string | null = null
  readonly #timer: NodeJS.Timeout | null = null

  constructor(options: KeyRingOptions) {
    this.#options = options
    this.#byClient = byClient(options.apiKeys)
    const { apiKeysFile: file } = options
    if (file === undefined) return
    this.#attempt(() => this.#take(readFileSync(file, 'utf8')))
    this.#timer = setInterval(() => void this.#read(file), FILE_CHECK_MS)
  }

  /** The client that a key or a token stands for; null if it is not valid. */
  clientOf(given: string): string | null {
    return this.clientOfKey(given) ?? this.#clientOfToken(given)
  }

  /** Compares with every key, so that the time says nothing. */
  clientOfKey(given: string): string | null {
    const digest = digestOf(given)
    let found: string | null = null
    for (const [client, entry] of this.#byClient) if (timingSafeEqual(entry.digest, digest)) found = client
    return found
  }

  /** The limits of a client with a key. */
  limitsOf(client: string): KeyLimits | undefined {
    return this.#byClient.get(client)?.limits
  }

  /** A token that stands for a key for a minute, in every process that has the key and the secret. */
  createToken(client: string): { readonly token: string; readonly expires_at: string } | null {
    if (!this.#byClient.has(client)) return null
    const endS = Math.floor((this.#options.wallTime() + TOKEN_LIFE_MS) / 1_000)
    const name = client.slice(CLIENT_PREFIX.length)
    return { token: `t.${name}.${endS}.${this.#proofOf(name, endS)}`, expires_at: new Date(endS * 1_000).toISOString() }
  }

  /** The greatest number of clients that a key may have. */
  get maxClients(): number {
    return Math.max(0, ...[...this.#byClient.values()].map(({ limits }) => limits.clients ?? 0))
  }

  close(): void {
    if (this.#timer) clearInterval(this.#timer)
  }

  #clientOfToken(given: string): string | null {
    const [, name = '', end = '', proof = ''] = TOKEN.exec(given) ?? []
    const client = CLIENT_PREFIX + name
    const leftMs = Number(end) * 1_000 - this.#options.wallTime()
    if (!this.#byClient.has(client) || leftMs <= 0 || leftMs > TOKEN_LIFE_MS + CLOCK_SLACK_MS) return null
    return timingSafeEqual(Buffer.from(proof), Buffer.from(this.#proofOf(name, Number(end)))) ? client : null
  }

  #proofOf(name: string, endS: number): string {
    return createHmac('sha256', this.#options.tokenSecret).update(`stocktape token ${name} ${endS}`).digest('base64url')
  }

  async #read(file: string): Promise<void> {
    const text = await readFile(file, 'utf8').catch((failure: unknown) => failure)
    this.#attempt(() => {
      if (typeof text !== 'string') throw text
      this.#take(text)
    })
  }

  /** Takes the keys of the file. */
  #take(text: string): void {
    if (text === this.#fileText) return
    const current = byClient([...this.#options.apiKeys, ...keyEntriesOfFile(text)])
    this.#fileText = text
    const revoked = new Set([...this.#byClient.keys()].filter((client) => !current.has(client)))
    this.#byClient = current
    if (revoked.size > 0) this.#options.onRevoked(revoked)
  }

  /** A file that cannot be read changes nothing: half a file must not lock clients out. */
  #attempt(take: () => void): void {
    try {
      take()
    } catch (failure) {
      const why = failure instanceof Error ? failure.message : String(failure)
      this.#options.warn('API_KEYS_FILE cannot be read, and its last keys stay valid', { why })
    }
  }
}

const CLIENT_PREFIX = 'key:'

const byClient = (entries: readonly KeyEntry[]): ReadonlyMap<string, KeyEntry> =>
  new Map(
    entries.map((entry) => [
      CLIENT_PREFIX + digestOf(`name ${entry.digest.toString('hex')}`).toString('hex', 0, NAME_CHARS / 2),
      entry,
    ]),
  )
