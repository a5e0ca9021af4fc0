import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { digestOf } from '../../../../src/relay/config/api-key-settings.ts'
import { type Config, readConfig } from '../../../../src/relay/config/config.ts'
import { renamed } from '../../../../src/relay/config/former-or-unknown-settings.ts'
import { codeNameOf, flagOf, settings } from '../../../../src/relay/config/settings.ts'
import { apiKey, otherApiKey } from '../../../support/api-keys.ts'

type Env = Readonly<Record<string, string>>

/** The settings of all parts. */
type AllSettings = Config['process'] & Config['chain'] & Config['tokens'] & Config['tape'] & Config['edge'] & Config['gateway']

const names = [...settings.keys()]

const configOf = (args: readonly string[], env: Env = {}): AllSettings => {
  const reading = readConfig(args, env)
  if (reading.kind !== 'settings') throw new Error(JSON.stringify(reading))
  const { process, chain, tokens, tape, edge, gateway } = reading.config
  return { ...process, ...chain, ...tokens, ...tape, ...edge, ...gateway }
}
const configErrorsOf = (args: readonly string[], env: Env = {}): readonly string[] => {
  const reading = readConfig(args, env)
  return reading.kind === 'mistakes' ? reading.lines : []
}

describe('a start without any settings', () => {
  it('uses every default', () => {
    expect(configOf([])).toMatchObject({
      ...{ port: 8_080, host: '127.0.0.1', dataDir: ':memory:', preDrainMs: 0, drainMs: 10_000, logLevel: 'info' },
      ...{ tapeRetentionMs: 30 * 86_400_000, tapeMaxMessages: 100_000, stocksRefreshMs: 15_000, navStaleAfterMs: 93_600_000 },
      ...{ pendingPollMs: 200, silenceMs: 3_000, backfillLimitMs: 21_600_000, backfillFirstMs: 21_600_000, heartbeatMs: 15_000 },
      ...{ maxBacklogBytes: 1_048_576, backlogPatienceMs: 5_000 },
      ...{ maxClients: 20_000, maxSelections: 2_000, maxReplay: 100_000 },
    })
  })

  it('reads no more of the past of the built-in chain than after an interruption, and nothing of another chain', () => {
    expect(configOf([], { BACKFILL_LIMIT: '1h' })).toMatchObject({ backfillFirstMs: 3_600_000 })
    expect(configOf([], { BACKFILL_FIRST: '0' })).toMatchObject({ backfillFirstMs: 0 })
    expect(configOf([], { STOCKS_API_URL: 'https://one.example', UPSTREAM_RPC_URL: 'https://one.example' })).toMatchObject({
      backfillFirstMs: 0,
    })
    expect(configErrorsOf([], { BACKFILL_FIRST: '7h' })).toEqual([
      'BACKFILL_FIRST must be at most BACKFILL_LIMIT: raise that one too, or read less',
    ])
  })

  it('leaves settings without a default absent', () => {
    const config = configOf([])
    const implied = ['UPSTREAM_RPC_URL', 'UPSTREAM_WS_URL', 'STOCKS_API_URL', 'FEEDS', 'POOLS', 'ORACLE_REGISTRY', 'DATA_DIR']
    const absent = [...settings].filter(([name, setting]) => setting.default === null && !implied.includes(name))
    expect(absent.length).toBeGreaterThan(0)
    for (const [name, setting] of absent) expect(config[codeNameOf(name, setting) as keyof AllSettings]).toBeUndefined()
    expect(config).toMatchObject({
      upstreamRpcUrl: [],
      upstreamWsUrl: [],
      stocksApiUrl: '',
      feeds: [],
      pools: [],
      oracleRegistry: null,
    })
  })

  it('has only defaults that their own setting accepts', () => {
    for (const { default: fallback, read } of settings.values()) {
      if (fallback !== null) expect(() => read(fallback)).not.toThrow()
    }
  })
})

describe('a setting', () => {
  it.each<[string, readonly string[], Env, number]>([
    ['the environment', [], { PORT: '9000' }, 9_000],
    ['a flag, with its value after =', ['--port=9000'], {}, 9_000],
    ['a flag, with its value as the next argument', ['--port', '9000'], {}, 9_000],
    ['the flag if both are given', ['--port=9000'], { PORT: '9001' }, 9_000],
    ['the flag if its variable is wrong', ['--port=9000'], { PORT: 'wrong' }, 9_000],
    ['the default if its variable is empty', [], { PORT: '', NETWORK: '' }, 8_080],
  ])('comes from %s', (_, args, env, port) => {
    expect(configOf(args, env)).toMatchObject({ port, network: undefined })
  })

  it('ignores variables of other programs', () => {
    expect(configOf([], { Port: '1', port: '2', STOCKTAPE_PORT: '3', NODE_ENV: 'x' })).toEqual(configOf([]))
  })

  it('may be a list of URLs, tried in order', () => {
    const urls = ' https://one.example/v2/key , https://two.example/ '
    const config = configOf([], { UPSTREAM_RPC_URL: urls, STOCKS_API_URL: 'https://api.example/' })
    expect(config.upstreamRpcUrl).toEqual(['https://one.example/v2/key', 'https://two.example'])
    expect(config.stocksApiUrl).toBe('https://api.example')
  })

  it('may be a list of addresses and ranges', () => {
    const list = configOf([], { TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7 ,fd00::/8' }).trustedProxies
    const contains = (address: string, family: 'ipv4' | 'ipv6' = 'ipv4') => list?.check(address, family)
    expect(['10.9.9.9', '192.0.2.7', '192.0.2.8', '11.0.0.0'].map((one) => contains(one))).toEqual([true, true, false, false])
    expect(['fd12::1', 'fe80::1'].map((one) => contains(one, 'ipv6'))).toEqual([true, false])
  })

  it('may be a list of origins or of keys', () => {
    const config = configOf([], { ORIGINS: 'https://A.example/, http://localhost:3000', API_KEYS: `${apiKey},${otherApiKey}` })
    expect(config.origins).toEqual(['https://a.example', 'http://localhost:3000'])
    expect(config.apiKeys?.map(({ digest }) => digest)).toEqual([apiKey, otherApiKey].map(digestOf))
  })

  it('may be keys by their hashes, with names and limits', () => {
    const hash = digestOf('one').toString('hex')
    expect(configOf([], { API_KEYS: `sha256:${hash} clients=5 rpc_rate=100, ${apiKey} replays=4 name=desk-2` }).apiKeys).toEqual([
      { digest: digestOf('one'), name: hash.slice(0, 8), limits: { clients: 5, rpc_rate: 100 } },
      { digest: digestOf(apiKey), name: 'desk-2', limits: { replays: 4 } },
    ])
  })

  it('of more than 1,000 keys is refused, at the first that is too many', () => {
    const keys = Array.from({ length: 1_001 }, (_, index) => `${apiKey}-${index}`)
    expect(configOf([], { API_KEYS: keys.slice(1).join() }).apiKeys).toHaveLength(1_000)
    expect(configErrorsOf([], { API_KEYS: keys.join() })).toEqual([expect.stringMatching(/^API_KEYS entry 1001 must not be there/)])
  })

  it.each([
    ['sha256:abc', 'must be a key: 16 or more'],
    ['k'.repeat(15), 'must be a key: 16 or more'],
    [`${apiKey} clients=0`, 'may have, after its key, name= '],
    [`${apiKey} clients=`, 'may have, after its key, name= '],
    [`${apiKey} speed=5`, 'may have, after its key, name= '],
    [`${apiKey} name=a.b`, 'may have, after its key, name= '],
    [`${apiKey} clients=5 two`, 'may have, after its key, name= '],
    [`sha256:${digestOf(otherApiKey).toString('hex')}`, 'must not have the key or the name of another: it has that of entry 1'],
    [`${apiKey} name=desk`, 'must not have the key or the name of another: it has that of entry 1'],
  ])('of a key is refused, and its place named: %s', (text, mistake) => {
    const lines = configErrorsOf([], { API_KEYS: `${otherApiKey} name=desk,${text}` })
    expect(lines).toEqual([expect.stringContaining(`API_KEYS entry 2 ${mistake}`)])
    expect(lines.join()).not.toContain(text)
  })

  it.each([
    ['the built-in chain', {}, undefined, ':memory:'],
    ['the built-in chain', {}, ':memory:', ':memory:'],
    ['the built-in chain', {}, '/tapes', '/tapes/demo'],
    ['a network', { NETWORK: 'base' }, undefined, './data'],
    ['a network', { NETWORK: 'base' }, ':memory:', ':memory:'],
    ['a network', { NETWORK: 'base' }, '/tapes', '/tapes'],
  ])('of %s (%o) with DATA_DIR %s has its tape in %s', (_, env, dataDir, expected) => {
    expect(configOf([], { ...env, ...(dataDir && { DATA_DIR: dataDir }) }).dataDir).toBe(expected)
    expect(configOf(dataDir ? [`--data-dir=${dataDir}`] : [], env).dataDir).toBe(expected)
  })

  it.each([
    ['0', 0],
    ['0s', 0],
    ['250ms', 250],
    ['15s', 15_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
  ])('that is a time may be %s', (text, ms) => {
    expect(configOf([], { DRAIN: text }).drainMs).toBe(ms)
  })

  it.each([
    ['7B', 7],
    ['64KiB', 65_536],
    ['16MiB', 16_777_216],
    ['1GiB', 1_073_741_824],
  ])('that is a size may be %s', (text, bytes) => {
    expect(configOf([], { MAX_BACKLOG: text }).maxBacklogBytes).toBe(bytes)
  })
})

describe('a bad value', () => {
  it.each([
    ['API_KEYS', 'entry 1 may have'],
    ['METRICS_TOKEN', 'must be letters'],
  ])('of %s is not printed, because it is a secret', (name, mistake) => {
    const lines = configErrorsOf([], { [name]: 'almost-certainly a secret' })
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^${name} ${mistake}`))])
    expect(lines.join()).not.toContain('almost')
  })

  it('of TOKEN_SECRET is one that is short, and is not printed', () => {
    expect(configErrorsOf([], { TOKEN_SECRET: 'x'.repeat(31) })).toEqual([
      'TOKEN_SECRET must be at least 32 letters, digits and signs without spaces',
    ])
    expect(configOf([], { TOKEN_SECRET: 'x'.repeat(32) }).tokenSecret).toHaveLength(32)
  })

  it('of API_KEYS_FILE is reported at the start, and no line of the file is printed', () => {
    expect(configErrorsOf([], { API_KEYS_FILE: '/nowhere' })).toEqual([
      expect.stringMatching(/^API_KEYS_FILE must be a file that can be read \(ENOENT\)/),
    ])
    const lines = configErrorsOf([], { API_KEYS_FILE: fileURLToPath(import.meta.url) })
    expect(lines).toEqual([expect.stringMatching(/^API_KEYS_FILE names a file of which line 1 must be a key/)])
    expect(lines.join()).not.toContain('import')
    const folder = mkdtempSync(join(tmpdir(), 'stocktape-keys-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'keys')
    writeFileSync(file, `# people\n\n${apiKey}\n`)
    expect(configErrorsOf([], { API_KEYS: apiKey, API_KEYS_FILE: file })).toEqual([
      'API_KEYS_FILE names a file of which line 3 must not have the key or the name of another: it has that of API_KEYS',
    ])
  })

  const stocks = { STOCKS_API_URL: 'https://api.example' }

  it.each([
    ['PORT', 'eighty', /whole number from 0 to 65,535/],
    ['PORT', '65536', /whole number from 0 to 65,535/],
    ['PORT', '0x50', /whole number/],
    ['PORT', '8e3', /whole number/],
    ['HOST', '  ', /must not be empty/],
    ['NATS_CREDENTIALS', '/nowhere', /a file that can be read \(ENOENT\)/],
    ['STOCKS_API_URL', 'api.example', /a URL that begins with http:\/\/ or https:\/\//],
    ['NETWORK', 'mainnet', /one of base, base-sepolia/],
    ['CHAIN_ID', '9007199254740993', /whole number from 1 to /],
    ['TAPE_RETENTION', '1.5h', /a time with a unit, from 1ms to 366d/],
    ['TAPE_RETENTION', '400d', /a time with a unit, from 1ms to 366d/],
    ['PENDING_POLL', '0', /a time with a unit, from 10ms to 1m/],
    ['MAX_BACKLOG', '256k', /a size with a unit, from 1B to 1GiB/],
    ['CALENDAR', 'NYSE', /one of XNYS, none/],
    ['POOL_MIN_DEPTH', '1e3', /whole number from 0 to /],
    ['ORACLE_REGISTRY', '0x12', /an address, 0x and 40 hex digits/],
    ['TRUSTED_PROXIES', 'proxy.example', /ranges such as 10\.0\.0\.0\/8, and "proxy\.example" is neither/],
    ['TRUSTED_PROXIES', '10.0.0.0/33', /ranges such as/],
    ['TRUSTED_PROXIES', '10.0.0.0/8/8', /ranges such as/],
    ['TRUSTED_PROXIES', '10.0.0.0/', /ranges such as/],
    ['TRUSTED_PROXIES', ' , ', /ranges such as/],
    ['ORIGINS', 'example.com', /origins such as https:\/\/example\.com/],
    ['ORIGINS', 'localhost:3000', /origins such as/],
    ['EXPLORER_URL', 'javascript:alert(1)', /a URL that begins with http:\/\/ or https:\/\//],
    ['LOG_LEVEL', 'verbose', /one of debug, info, warn, error;/],
  ])('of %s (%j) gives one line with the name and what the value must be', (name, value, must) => {
    for (const lines of [configErrorsOf([], { [name]: value }), configErrorsOf([`--${flagOf(name)}=${value}`])]) {
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatch(new RegExp(`^${name} must `))
      expect(lines[0]).toMatch(must)
      expect(lines[0]).toContain(JSON.stringify(value))
    }
  })

  it.each([
    ['UPSTREAM_RPC_URL', 'https://one.example,two', /http:\/\/ or https:\/\//],
    ['UPSTREAM_RPC_URL', ' , ', /http:\/\/ or https:\/\//],
    ['UPSTREAM_WS_URL', 'https://one.example', /ws:\/\/ or wss:\/\//],
  ])('among the URLs of %s (%s) gives a line with the valid schemes', (name, value, must) => {
    const [line] = configErrorsOf([], { ...stocks, [name]: value })
    expect(line).toMatch(new RegExp(`^${name} must be a URL that begins with `))
    expect(line).toMatch(must)
  })

  it('is one just beyond the bounds in its own error line', () => {
    for (const [name, setting] of settings) {
      const bounds = /from ([\d,]+)(\w*) to ([\d,]+)(\w*);/.exec(configErrorsOf([], { [name]: 'x' })[0] ?? '')
      if (!bounds) continue
      const [min, minUnit, max, maxUnit] = bounds.slice(1)
      const ends = [[min, minUnit, -1] as const, [max, maxUnit, 1] as const]
      for (const [text = '', unit = '', step] of ends) {
        const end = Number(text.replaceAll(',', ''))
        const value = { BACKFILL_LIMIT: '366d', [name]: `${end}${unit}` }
        expect(configOf([], value)[codeNameOf(name, setting) as keyof AllSettings]).toBeTypeOf('number')
        expect(configErrorsOf([], { [name]: `${end + step}${unit}` })).toHaveLength(1)
      }
    }
  })

  it.each([
    ['SILENCE', '3000', 'must have a unit, such as 3000ms or 3s'],
    ['TAPE_RETENTION', '86400000', 'must have a unit, such as 86400000ms or 1d'],
    ['MAX_BACKLOG', '1048576', 'must have a unit, such as 1048576B or 1MiB'],
  ])('of %s is the bare number %s: the line shows its unit', (name, value, message) => {
    const line = `${name} ${message}; it is "${value}"`
    expect(configErrorsOf([], { [name]: value })).toEqual([line])
    expect(configErrorsOf([`--${flagOf(name)}`, value])).toEqual([line])
  })

  it('is reported with all other mistakes, one line each', () => {
    const lines = configErrorsOf(['--heartbeat=fast'], { PORT: 'eighty', LOG_LEVEL: 'verbose', DRAIN: '5s' })
    expect(lines.map((line) => line.split(' ')[0]).toSorted()).toEqual(['HEARTBEAT', 'LOG_LEVEL', 'PORT'])
  })

  it('is reported in one line for any text', () => {
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }), (name, value) => {
        for (const line of configErrorsOf([], { [name]: value })) {
          expect(line).toMatch(/^[A-Z_]+ (must|is missing|names|entry \d+ (must|may))/)
          expect(line.split(/[\n\r]/)).toHaveLength(1)
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('settings that contradict each other', () => {
  it('are a network and another chain id', () => {
    const [line] = configErrorsOf([], { NETWORK: 'base-sepolia', CHAIN_ID: '8453' })
    expect(line).toBe('CHAIN_ID 8453 contradicts NETWORK base-sepolia, whose chain id is 84532: leave one of them out')
  })

  it.each([
    [{ NETWORK: 'base' }, 'NETWORK'],
    [{ UPSTREAM_RPC_URL: 'https://one.example', STOCKS_API_URL: 'https://api.example' }, 'UPSTREAM_RPC_URL'],
    [{ UPSTREAM_WS_URL: 'wss://one.example', STOCKS_API_URL: 'https://api.example' }, 'UPSTREAM_WS_URL'],
  ])('are faults and an upstream: %o', (env, name) => {
    const line = `FAULTS works only with the built-in chain: leave it out, or leave out ${name}`
    expect(configErrorsOf(['--faults', 'drop=5%'], env)).toEqual([line])
  })

  it('are an access token for the metrics and a port that needs none', () => {
    const line = 'METRICS_TOKEN has no effect with METRICS_PORT, which needs none: leave one of them out'
    expect(configErrorsOf([], { METRICS_PORT: '9100', METRICS_TOKEN: 'secret' })).toEqual([line])
    const sameLine = 'METRICS_PORT must differ from PORT 9100, which serves the clients'
    expect(configErrorsOf([], { PORT: '9100', METRICS_PORT: '9100' })).toEqual([sameLine])
  })

  it('are not the fault gap and a long tape, which it shortens', () => {
    expect(configOf(['--faults', 'gap=10s'])).toMatchObject({ tapeRetentionMs: 5_000 })
    expect(configOf(['--faults', 'gap=10s'], { TAPE_RETENTION: '100ms' })).toMatchObject({ tapeRetentionMs: 100 })
    expect(configOf(['--faults', 'drop=5%'])).toMatchObject({ tapeRetentionMs: 30 * 86_400_000 })
  })

  it('are not a network and its own chain id, which it implies', () => {
    expect(configOf([], { NETWORK: 'base' }).chainId).toBe(8_453)
    expect(configOf([], { NETWORK: 'base-sepolia' }).chainId).toBe(84_532)
    expect(configOf([], { NETWORK: 'base', CHAIN_ID: '8453' }).chainId).toBe(8_453)
  })
})

describe('a name of an earlier version', () => {
  it.each([...renamed])('%s is refused with %s, as a variable and as a flag', (old, now) => {
    const line = new RegExp(`^${old} is now ${now}(, and its value has a unit, such as .*)?$`)
    expect(configErrorsOf([], { [old]: '500' })).toEqual([expect.stringMatching(line)])
    expect(configErrorsOf([`--${flagOf(old)}`, '500'])).toEqual([
      expect.stringMatching(`^--${flagOf(old)} is now --${flagOf(now)}`),
    ])
    expect(settings.has(now)).toBe(true)
  })

  it.each([
    [[], { RPC_OPEN: 'true' }, 'RPC_OPEN'],
    [['--rpc-open', 'true'], {}, '--rpc-open'],
  ])('is refused with the reason if nothing takes its place: %j %o', (args, env, given) => {
    const reason = 'eth_subscribe serves the contracts of listed tokens alone'
    expect(configErrorsOf(args, env)).toEqual([`${given} is no longer a setting: ${reason}`])
  })
})

it('an earlier name whose value had no unit shows one', () => {
  const line = 'SILENCE_MS is now SILENCE, and its value has a unit, such as 200ms, 15s or 24h'
  expect(configErrorsOf([], { SILENCE_MS: '500' })).toEqual([line])
})

describe('a variable that is no setting', () => {
  it.each([
    ['UPSTREAM_RPC_URLS', /^UPSTREAM_RPC_URLS is not a setting\. Did you mean UPSTREAM_RPC_URL\? Try --help\.$/],
    ['UPSTREAM_URL', /Did you mean UPSTREAM_(RPC|WS)_URL\?/],
    ['STOCKS_URL', /Did you mean STOCKS_API_URL\?/],
    ['BACKLOG_BYTES', /^BACKLOG_BYTES is not a setting\./],
  ])('stops the start if it begins like ours: %s', (name, message) => {
    expect(configErrorsOf([], { [name]: 'https://x.example/SECRET' })).toEqual([expect.stringMatching(message)])
    expect(configErrorsOf([], { [name]: 'https://x.example/SECRET' }).join()).not.toContain('SECRET')
    expect(configErrorsOf([], { [name]: '' })).toEqual([])
  })

  it.each([
    ['NETWROK', ['NETWROK is set, and is not a setting. Did you mean NETWORK?']],
    ['UPSTREM_RPC_URL', ['UPSTREM_RPC_URL is set, and is not a setting. Did you mean UPSTREAM_RPC_URL?']],
    ['NETWORKING', []],
    ['PORTS', []],
    ['Network', []],
    ['UPSTREAM_SERVICE_HOST', []],
    ['UPSTREAM_SERVICE_PORT_HTTP', []],
    ['TAPE_PORT', []],
    ['TAPE_PORT_8080_TCP', []],
    ['TAPE_PORT_8080_TCP_ADDR', []],
    ['UPSTREAM_SERVICE_PORT', []],
    ['BACKLOG_PORT_53_UDP_PROTO', []],
  ])('is a warning if it is one edit away from ours, and nothing else if not: %s', (name, warnings) => {
    const result = readConfig([], { [name]: 'tcp://10.0.0.1:80' })
    expect(result).toMatchObject({ kind: 'settings', warnings })
  })
})

describe('--help', () => {
  it.each([['--help'], ['-h'], ['--port=eighty', '--help']])('is printed for %s', (...args) => {
    expect(readConfig(args, { PORT: 'eighty' }).kind).toBe('help')
  })

  it('has every setting once, with its flag, its meaning, its default and the mark of a file', () => {
    const reading = readConfig(['--help'], {})
    if (reading.kind !== 'help') throw new Error('no help')
    const text = reading.text.replaceAll(/\n? +/g, ' ')
    for (const [name, { default: fallback, description, mayHoldSecret }] of settings) {
      expect(text.split(` --${flagOf(name)} ${name} `)).toHaveLength(2)
      const ending = `${fallback === null ? '' : ` (${fallback})`}${mayHoldSecret ? ' [file]' : ''}`
      expect(text).toContain(` --${flagOf(name)} ${name} ${description}${ending}`)
    }
  })
})

describe('a flag', () => {
  it('that is unknown hides no other mistake: each has a line', () => {
    expect(configErrorsOf(['--prot', '1', '-v'], { LOG_LEVEL: 'x' })).toEqual([
      "'--prot' is not a flag. Did you mean --port? Try --help.",
      "'-v' is not a flag. Did you mean -V? Try --help.",
      expect.stringMatching(/^LOG_LEVEL must/),
    ])
  })

  it.each([
    [['-p'], '-p'],
    [['--no-port'], '--no-port'],
    [['start'], 'start'],
    [['--port'], '--port'],
    [['--foo\nbar'], '--foo'],
  ])('that is unknown or incomplete is reported in one line that points to --help: %s', (args, named) => {
    const lines = configErrorsOf(args)
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toContain('\n')
    expect(lines[0]).toContain(`'${named}`)
    expect(lines[0]).toMatch(/ Try --help\.$/)
  })
})

describe('a check of several settings', () => {
  it('reports a chain without a list, and a list without a chain', () => {
    // It runs only if each value is valid.
    expect(configErrorsOf([], { UPSTREAM_RPC_URL: 'https://x', STOCKS_API_URL: 'y' })).toHaveLength(1)
    expect(configErrorsOf([], { UPSTREAM_RPC_URL: 'https://x' })).toEqual([expect.stringMatching(/^STOCKS_API_URL is missing/)])
    expect(configErrorsOf([], { STOCKS_API_URL: 'https://x' })).toEqual([expect.stringMatching(/^UPSTREAM_RPC_URL is missing/)])
  })
})

describe('a list of URLs', () => {
  it.each(['wss://user:SECRET@x.example/v2/SECRET', 'wss://x.example?key=SECRET'])('is never printed with its key: %s', (url) => {
    const lines = configErrorsOf([], { UPSTREAM_RPC_URL: url, STOCKS_API_URL: 'https://y' })
    expect(lines.join()).toContain('x.example')
    expect(lines.join()).not.toContain('SECRET')
  })
})

describe('the feeds', () => {
  const one = `0x${'1a'.repeat(20)}`
  const other = `0x${'2B'.repeat(20)}`
  const feedsOf = (text: string) => configOf([], { FEEDS: text }).feeds

  it('are pairs of a token, by its symbol or its address, and a proxy', () => {
    expect(feedsOf(` AAPLc = ${one} ,${other}=${other},`)).toEqual([
      { token: 'AAPLc', proxy: one },
      { token: other.toLowerCase(), proxy: other.toLowerCase() },
    ])
  })

  it.each([
    ['AAPLc', 'AAPLc', /pairs such as AAPLc=0x/],
    [`AAPLc=${one},TSLAc`, 'TSLAc', /pairs/],
    [',', '', /pairs/],
    [`=${one}`, `=${one}`, /pairs/],
    [`AAPLc=${one}00`, `AAPLc=${one}00`, /the address of a feed/],
    ['AAPLc=0x12', 'AAPLc=0x12', /the address of a feed/],
    [`AAPLc=${one.replace('1a', 'zz')}`, `AAPLc=${one.replace('1a', 'zz')}`, /the address of a feed/],
    [`AAPLc=0x${'0'.repeat(40)}`, `AAPLc=0x${'0'.repeat(40)}`, /the address of a feed/],
    [`AAPLc=${one};TSLAc=${other}`, `AAPLc=${one};TSLAc=${other}`, /pairs/],
    [`0xb2=${one}`, `0xb2=${one}`, /by its symbol or its address/],
    [`AAPLc=${one},TSLAc=${one},aaplC=${other}`, 'aaplC', /each token once/],
  ])('%j are a mistake, and the line quotes %j', (given, bad, must) => {
    const [line, ...others] = configErrorsOf([], { FEEDS: given })
    expect(others).toEqual([])
    expect(line).toMatch(/^FEEDS must /)
    expect(line).toMatch(must)
    expect(line?.split('; it is ')[0]).toContain(JSON.stringify(bad))
  })
})

it('--version replaces a start', () => {
  expect(readConfig(['--version'], { PORT: 'x' })).toEqual({ kind: 'version' })
})
