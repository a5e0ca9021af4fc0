import { expect, it, onTestFinished, vi } from 'vitest'
import { apiKey } from '../../../support/api-keys.ts'
import { ChildProgram, freePort } from '../../../support/child-program.ts'
import { needPrograms } from '../../../support/debian-programs.ts'
import { openDevnet, openRelayFor, openTestStack, transfer } from '../../../support/test-stack.ts'

needPrograms('python')

const WAIT_TIMEOUT_MS = 10_000

const start = (command: readonly [string, ...string[]]): ChildProgram => {
  const program = new ChildProgram(command, { env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  return program
}
const tail = (...args: readonly string[]): ChildProgram => start([process.execPath, 'src/main.ts', 'tail', ...args])

it('the tail command prints a line for each message of its symbols, and totals at Ctrl-C', async () => {
  const stack = await openTestStack()
  const program = tail('aapl', 'TSLAc', '--url', stack.relay.url, '--types', 'transfer')
  await program.waitForOutput('stderr', /tail: live over websocket, source \w+/)
  transfer(stack, 'AAPLc', 1, 150_000_000n)
  expect((await program.waitForOutput('stdout', /AAPLc +transfer +(\S+)/))[1]).toBe('1.5')
  program.signal('SIGINT')
  expect(await program.waitForExit()).toBe(0)
  expect(program.stderr).toMatch(/tail: 1 updates in \d+ s: 1 transfer\nstocktape tail: 1 movements = \d+\.\d\d USD: AAPLc 1 = /)
  expect(program.stderr).toMatch(
    new RegExp(`continue with: stocktape tail aapl TSLAc --url ${stack.relay.url} --types transfer --since \\w+\\.\\d+\n$`),
  )
})

it('the tail command with --json prints the messages as on the wire, and nothing else', async () => {
  const stack = await openTestStack()
  transfer(stack, 'AAPLc', 1, 150_000_000n)
  const program = tail('*', '--url', stack.relay.url, '--json', '--since', 'start')
  await program.waitForOutput('stdout', /\{"type":"transfer".*\}\n/)
  const messages = program.stdout.trimEnd().split('\n')
  const sent = await (await fetch(`${stack.relay.url}/v1/events?types=transfer`)).text()
  const line = messages.find((text) => text.startsWith('{"type":"transfer"')) ?? 'none'
  expect(sent).toContain(line)
  for (const text of messages) expect(JSON.parse(text)).toHaveProperty('type')
})

it('the tail command takes a key, and exits with 0 when the reader of its pipe leaves', async () => {
  const stack = await openTestStack({ API_KEYS: apiKey })
  const tailToHead = `"${process.execPath}" src/main.ts tail AAPLc --url ${stack.relay.url} --key ${apiKey}; echo "exit code $?" >&2`
  const program = start(['sh', '-c', `{ ${tailToHead}; } | head -n 1`])
  await program.waitForOutput('stdout', /\n/)
  // A write to the pipe shows that the reader has left.
  await vi.waitUntil(() => {
    transfer(stack)
    return program.stderr.includes('exit code')
  }, WAIT_TIMEOUT_MS)
  expect(program.stdout).toMatch(/^# AAPLc .*\n$/)
  expect(program.stderr).toMatch(/^stocktape tail: live [^\n]*\nexit code 0\n$/)
})

it('the tail command reports a mistake in one line, with code 2, and a relay that is away with code 1', async () => {
  const stack = await openTestStack()
  const keyed = await openTestStack({ API_KEYS: apiKey })
  const unusedUrl = `http://127.0.0.1:${await freePort()}`
  const cases: [readonly string[], RegExp, number][] = [
    [['APPL', '--url', stack.relay.url], /^stocktape tail: No tokenized stock 'APPL'. Did you mean AAPLc\?\n$/, 2],
    [['AAPLc', '--types', 'transfr', '--url', stack.relay.url], /^stocktape tail: types: unknown type "transfr"[^\n]*\n$/, 2],
    [
      ['AAPLc', '--url', unusedUrl],
      /^stocktape tail: http[^\n]* cannot be reached[^\n]*ECONNREFUSED[^\n]* stocktape serve [^\n]*\n$/,
      1,
    ],
    [['AAPLc', '--url', 'relay'], /^stocktape tail: relay must begin with http:\/\/ or https:\/\/\n$/, 2],
    [['AAPLc', '--url', keyed.relay.url], /^stocktape tail: the relay requires an API key: use --key or STOCKTAPE_KEY\n$/, 2],
    [['AAPLc', '--party', '0x12'], /^stocktape tail: '--party' is now '--account'\n$/, 2],
    [[], /^stocktape tail: name at least one symbol, or \* for all\n$/, 2],
    [['AAPLc', '--tui', '--url', stack.relay.url], /^stocktape tail: --tui needs a terminal\n$/, 2],
  ]
  for (const [args, message, code] of cases) {
    const program = tail(...args)
    expect([await program.waitForExit(), program.stderr]).toEqual([code, expect.stringMatching(message)])
    expect(program.stdout).toBe('')
  }
})

it('the tail command prints no character that changes the direction, whatever the symbols are', async () => {
  const devnet = await openDevnet()
  devnet.list.change('TSLAc', { symbol: 'TSL\u202eAc' })
  devnet.list.change('AAPLc', { symbol: 'AAP\u202eLc' })
  const relay = await openRelayFor(devnet)
  const program = tail('AAP\u202eLc', 'TSLX', '--url', relay.url, '--types', 'transfer')
  await program.waitForOutput('stderr', /tail: TSLX is unknown; did you mean [^\n]*\n/)
  await program.waitForOutput('stderr', /tail: live over/)
  transfer({ devnet }, 'AAP\u202eLc')
  await program.waitForOutput('stdout', /transfer/)
  program.signal('SIGINT')
  expect(await program.waitForExit()).toBe(0)
  expect(program.stderr).toMatch(/USD: AAP\ufffdLc 1 = /)
  expect(program.stderr + program.stdout).not.toMatch(/\p{Bidi_Control}/u)
})

/** Runs a command in a terminal of 24 rows and 100 columns, passes on what it prints, and types q once that matches. */
const terminal = `
import fcntl, os, pty, re, struct, sys, termios
child, screen = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
printed = b""
while True:
    try:
        data = os.read(screen, 65536)
    except OSError:
        break
    os.write(1, data)
    before, printed = printed, printed + data
    if re.search(sys.argv[1].encode(), printed) and not re.search(sys.argv[1].encode(), before):
        os.write(screen, b"q")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
`

it('the tail command with --tui draws a table, and gives the terminal back at q', async () => {
  const stack = await openTestStack()
  const inTerminal = ['python3', '-c', terminal, 'preconfirmed +AAPLc +transfer +1[.]5'] as const
  const program = start([...inTerminal, process.execPath, 'src/main.ts', 'tail', 'AAPLc', '--tui', '--url', stack.relay.url])
  await program.waitForOutput('stdout', /AAPLc .*live over websocket/s)
  transfer(stack, 'AAPLc', 1, 150_000_000n)
  expect(await program.waitForExit()).toBe(0)
  expect(program.stdout).toMatch(/AAPLc +transfer +1\.5/)
  expect(program.stdout.startsWith('\u001b[?1049h')).toBe(true)
  const [, after = ''] = program.stdout.split('\u001b[?25h\u001b[?1049l')
  expect(after).toMatch(
    /^stocktape tail: \d+ updates in .*continue with: stocktape tail AAPLc --tui --url .*--since \w+\.\d+\r\n$/s,
  )
})
