import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { judgeAll } from '../../../src/tools/conform/conform.ts'
import type { RuleVerdict } from '../../../src/tools/conform/rule-verdict.ts'
import { rules } from '../../../src/tools/conform/rules.ts'
import { ChildProgram, createTempFolder } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'

needPrograms('python', 'go')

/** The scenarios mostly wait. */
const JOBS = 4

const judged = (command: readonly string[], names?: readonly string[]): Promise<readonly RuleVerdict[]> =>
  judgeAll(
    rules.filter(({ name }) => names?.includes(name) ?? true),
    command,
    JOBS,
    () => {},
  )
const namesOf = (verdicts: readonly RuleVerdict[], ...outcomes: readonly RuleVerdict['outcome'][]) =>
  verdicts.filter(({ outcome }) => outcomes.includes(outcome)).map(({ rule }) => rule)
const problems = (verdicts: readonly RuleVerdict[]) =>
  verdicts.filter(({ outcome }) => outcome === 'broken').map(({ rule, detail }) => `${rule}: ${detail}`)

const webSocketRules = ['protocol', 'forbidden', 'nothing-subscribed', 'full', 'too-many-messages', 'too-many-connections']

describe.concurrent('the conformance kit', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['a client without the SDK', ['test/support/planted-client.ts'], ['count', 'refused-for-now']],
    ['the SDK', ['test/support/sdk-client.ts'], ['count', 'refused-for-now']],
    ['the SDK over SSE', ['test/support/sdk-client.ts', 'sse'], ['count', ...webSocketRules]],
  ])('finds that %s keeps every rule', async (_, args, notApplicable) => {
    const verdicts = await judged([process.execPath, ...args])
    expect(problems(verdicts)).toEqual([])
    expect(namesOf(verdicts, 'not applicable', 'optional')).toEqual(notApplicable)
  })

  it('finds that the SDK with a value filter notices a loss by its number, and resumes where it last did', async () => {
    const verdicts = await judged(
      [process.execPath, 'test/support/sdk-client.ts', 'websocket', '1'],
      ['count', 'chain', 'resume', 'repeats', 'gap-epoch', 'gap-long', 'going-away'],
    )
    expect(problems(verdicts)).toEqual([])
    expect(namesOf(verdicts, 'kept')).toEqual(['count', 'resume', 'repeats', 'gap-long', 'gap-epoch', 'going-away'])
  })

  it('finds that the Python program of the documents keeps every rule', async () => {
    const verdicts = await judged(['/usr/bin/python3', 'src/docs/programs/follow.py'])
    expect(problems(verdicts)).toEqual([])
    expect(namesOf(verdicts, 'not applicable', 'optional')).toEqual(['count', ...webSocketRules])
  })

  it('finds that the Go program of the documents keeps every rule', async (test) => {
    const program = join(await createTempFolder(test), 'follow')
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, CGO_ENABLED: '0' }
    const built = new ChildProgram(['go', 'build', '-o', program, 'src/docs/programs/follow.go'], { env })
    expect([await built.waitForExit(), built.stderr]).toEqual([0, ''])
    const verdicts = await judged([program])
    expect(problems(verdicts)).toEqual([])
    expect(namesOf(verdicts, 'not applicable', 'optional')).toEqual(['count', ...webSocketRules])
  })

  it.each([
    ['comes back without a position', 'resume'],
    ['comes back with its first position', 'resume'],
    ['comes back after what it received', 'resume'],
    ['prints repetitions', 'repeats'],
    ['swallows gaps', 'gap-expired'],
    ['does not compare prev', 'chain'],
    ['believes that a chain begins with its first message', 'no-false-alarm'],
    ['waits for ever on a silent connection', 'silence'],
    ['comes back after 4003', 'forbidden'],
    ['does not back off', 'full'],
    ['ignores retry_ms', 'going-away'],
    ['reads decimals as numbers', 'messages'],
    ['dies of an unknown type', 'unknown-types'],
    ['drops what is not read', 'slow-output'],
    ['swallows retracts', 'endings'],
    ['goes on after a lasting refusal', 'unknown-symbol'],
  ])('fails a client that %s, by the rule %s', async (mistake, rule) => {
    // A rule that the mistake has nothing to do with is kept.
    const other = rule === 'endings' ? 'messages' : 'endings'
    const isPrecise = mistake !== 'reads decimals as numbers'
    const verdicts = await judged([process.execPath, 'test/support/planted-client.ts', mistake], isPrecise ? [rule, other] : [rule])
    expect(namesOf(verdicts, 'broken'), JSON.stringify(verdicts)).toEqual([rule])
  })

  it.each<[readonly string[], number, RegExp]>([
    [[], 2, /^stocktape conform: name the command that starts your client: [^\n]*\n$/],
    [['no-such-command'], 2, /^stocktape conform: there is no command no-such-command\n$/],
    [['README.md'], 2, /^stocktape conform: there is no command README\.md\n$/],
    [['./README.md'], 2, /^stocktape conform: \.\/README\.md cannot be executed\n$/],
    [['--only', 'resum', 'true'], 2, /^stocktape conform: there is no rule resum\. Did you mean resume\? Try --list\.\n$/],
    [['--jbos', '1', 'true'], 2, /^stocktape conform: '--jbos' is not a flag\. Did you mean --jobs\? Try --help\.\n$/],
    [['--jobs', '0', 'true'], 2, /^stocktape conform: --jobs must be a number from 1 to 32, not 0\n$/],
    [['--server', '127.0.0.1:1'], 2, /^stocktape conform: --server must be a URL such as http:[^\n]*, not 127\.0\.0\.1:1\n$/],
    [['--server', 'http://127.0.0.1:1'], 2, /^stocktape conform: http:\/\/127\.0\.0\.1:1 does not answer as a relay: [^\n]*\n$/],
    [['--server', 'http://127.0.0.1:1', 'true'], 2, /^stocktape conform: --server checks a server; leave out the command\n$/],
    [['--server', 'http://127.0.0.1:1', '--only', 'resum'], 2, /there is no rule resum\. Did you mean resume\? Try --list\.\n$/],
    [['--only', 'resume', 'sh', '-c', 'echo gone >&2; exit 7'], 1, /^$/],
  ])(
    'with %j ends with %i',
    async (args, code, stderr) => {
      const program = new ChildProgram([process.execPath, 'src/main.ts', 'conform', ...args], { env: { PATH: process.env.PATH } })
      expect([await program.waitForExit(), program.stderr]).toEqual([code, expect.stringMatching(stderr)])
      if (code === 1)
        expect(program.stdout).toMatch(/✗ resume .*\n +broken: the client did not connect within \d+ s; it ended with 7: gone\n/)
    },
    60_000,
  )
})
