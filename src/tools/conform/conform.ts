import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Command, EXIT_FAILED, EXIT_OK, UsageError } from '../../lib/exit-codes.ts'
import { adviceFor, type CommandFlags, commonFlags, readFlags, switchFlag, textFlag } from '../../lib/flags.ts'
import { flagTerms, helpText } from '../../lib/help.ts'
import { runServerConformance } from './judge-server.ts'
import { judge, type RuleText, type RuleVerdict } from './rule-verdict.ts'
import { type Rule, rules } from './rules.ts'
import { ScenarioDriver } from './scenario-driver.ts'
import { serverRules } from './server-rules.ts'

export const conformFlags = {
  server: textFlag('check the server at this URL, and no client'),
  key: textFlag('the API key for that server'),
  only: { ...textFlag('the rules to check, separated by commas'), choices: [...rules, ...serverRules].map(({ name }) => name) },
  list: switchFlag('print the rules and end'),
  json: switchFlag('one JSON object: ok, verdicts'),
  jobs: textFlag('number of scenarios that run at the same time (4)'),
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'stocktape conform [--only RULE[,RULE]] [--json] [--jobs 4] [--] COMMAND [ARGUMENT ...]\n  stocktape conform --server URL [--key KEY] [--only RULE[,RULE]] [--json]',
  'Checks a client, in any language, against the rules of the contract. It starts a scripted relay on this machine, runs the command once for each rule, and reports which rules the client keeps.',
  'With --server it checks a relay: it opens streams over every transport, and reports which rules the relay keeps. A rule that would have to act on the chain or restart the relay is skipped. If nothing happens on the chain, rules that need messages are skipped too.',
  'The client follows the relay at STOCKTAPE_URL (also {url} in an argument), with the symbols in STOCKTAPE_SYMBOLS. It drops repetitions, and prints each message as a line of JSON on standard output. If it finds that messages are missing, it prints {"type":"gap","reason":"missed"}, or reads them from /v1/events and prints them. It writes everything else to standard error. A client that stores its position uses the file STOCKTAPE_POSITION.',
  flagTerms(conformFlags),
  'Exit codes: 0 all rules are kept, 1 some are broken, 2 a mistake in the arguments.',
)

const JOBS = 4
const JOBS_BOUND = 32
const NAME_COLUMN = 22

export const conform: Command = async (args) => {
  const [own, command] = splitCommand(args)
  const { values } = readFlags(conformFlags, own, { help })
  if (values.server !== undefined) return conformServer(values.server, command, values)
  const chosen = chooseRules(rules, values.only)
  if (values.list) {
    printRules(chosen)
    return EXIT_OK
  }
  const jobs = readJobs(values.jobs)
  checkCommand(command)
  return report(await judgeAll(chosen, command, jobs, values.json ? ignoreVerdict : printVerdict), values.json)
}

type ServerFlags = { readonly key?: string; readonly only?: string; readonly list?: boolean; readonly json?: boolean }

async function conformServer(url: string, command: readonly string[], { key, only, list, json }: ServerFlags): Promise<number> {
  const chosen = chooseRules(serverRules, only)
  if (list) {
    printRules(chosen)
    return EXIT_OK
  }
  if (!/^https?:\/\//.test(url)) throw new UsageError(`--server must be a URL such as http://127.0.0.1:8080, not ${url}`)
  if (command.length > 0) throw new UsageError('--server checks a server; leave out the command')
  const server = { url: url.replace(/\/+$/, ''), key, rules: chosen, onVerdict: json ? ignoreVerdict : printVerdict }
  try {
    return report(await runServerConformance(server), json)
  } catch (failure) {
    throw new UsageError(`${url} does not answer as a relay: ${failure instanceof Error ? failure.message : failure}`)
  }
}

function report(verdicts: readonly RuleVerdict[], json: boolean | undefined): number {
  const isOk = verdicts.every(({ outcome }) => outcome !== 'broken')
  if (json) process.stdout.write(`${JSON.stringify({ ok: isOk, verdicts }, null, 2)}\n`)
  else process.stdout.write(`\n${summary(verdicts)}\n`)
  return isOk ? EXIT_OK : EXIT_FAILED
}

const ignoreVerdict = (): void => {}
const printVerdict = (verdict: RuleVerdict): void => void process.stdout.write(`${verdictLines(verdict).join('\n')}\n`)

function printRules(chosen: readonly RuleText[]): void {
  for (const { name, section, sentence } of chosen) process.stdout.write(`${name.padEnd(NAME_COLUMN)} ${section} ${sentence}\n`)
}

/** Reports verdicts in the order of the rules, each as soon as all earlier verdicts are known. */
export async function judgeAll(
  chosen: readonly Rule[],
  command: readonly string[],
  jobs: number,
  onVerdict: (verdict: RuleVerdict) => void,
): Promise<readonly RuleVerdict[]> {
  const verdicts: (RuleVerdict | undefined)[] = []
  let next = 0
  let reported = 0
  const work = async () => {
    for (let index = next++; index < chosen.length; index = next++) {
      const rule = chosen[index]
      if (!rule) return
      verdicts[index] = await judgeClient(rule, command)
      for (let verdict = verdicts[reported]; verdict; verdict = verdicts[reported]) {
        onVerdict(verdict)
        reported += 1
      }
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return verdicts.filter((verdict) => verdict !== undefined)
}

/** Separates the flags of this tool from the command of the client: the first word that is no flag, or the words after `--`. */
function splitCommand(args: readonly string[]): readonly [own: readonly string[], command: readonly string[]] {
  const start = args.findIndex((word, index) => word === '--' || (!word.startsWith('-') && !takesValue(args[index - 1])))
  if (start < 0) return [args, []]
  return [args.slice(0, start), args.slice(args[start] === '--' ? start + 1 : start)]
}

const takesValue = (word: string | undefined): boolean =>
  Object.entries(conformFlags).some(([name, { type }]) => type === 'string' && word === `--${name}`)

function chooseRules<Named extends RuleText>(all: readonly Named[], only: string | undefined): readonly Named[] {
  if (only === undefined) return all
  return only.split(',').map((name) => {
    const rule = all.find((rule) => rule.name === name)
    if (rule) return rule
    const names = all.map((rule) => rule.name)
    throw new UsageError(`there is no rule ${name}. ${adviceFor(name, names, '--list')}`)
  })
}

function readJobs(text: string | undefined): number {
  if (text === undefined) return JOBS
  const jobs = Number(text)
  if (Number.isInteger(jobs) && jobs >= 1 && jobs <= JOBS_BOUND) return jobs
  throw new UsageError(`--jobs must be a number from 1 to ${JOBS_BOUND}, not ${text}`)
}

function checkCommand([file]: readonly string[]): void {
  if (file === undefined) throw new UsageError('name the command that starts your client: stocktape conform -- python3 client.py')
  const candidates = file.includes('/') ? [file] : (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, file))
  const found = candidates.find((path) => existsSync(path))
  if (found === undefined) throw new UsageError(`there is no command ${file}`)
  try {
    accessSync(found, constants.X_OK)
  } catch {
    throw new UsageError(`${found} cannot be executed`)
  }
}

async function judgeClient(rule: Rule, command: readonly string[]): Promise<RuleVerdict> {
  const driver = await ScenarioDriver.open(command, rule.name)
  return judge(rule, () => rule.run(driver), rule.isOptional).finally(() => driver.close())
}

const marks = { kept: '✓', broken: '✗', optional: '-', 'not applicable': '-' } as const

/** Returns the line of a rule. If the rule is not kept, a second line says what happened. */
function verdictLines({ rule, section, sentence, outcome, detail }: RuleVerdict): readonly string[] {
  const first = `${marks[outcome]} ${rule.padEnd(NAME_COLUMN)} ${section} ${sentence}`
  if (detail === null) return [first]
  const label = { kept: '', broken: 'broken: ', optional: 'not kept, optional: ', 'not applicable': 'not applicable: ' }[outcome]
  return [first, `  ${' '.repeat(NAME_COLUMN)} ${label}${detail}`]
}

function summary(verdicts: readonly RuleVerdict[]): string {
  const count = (outcome: RuleVerdict['outcome']) => verdicts.filter((verdict) => verdict.outcome === outcome).length
  const others = count('optional') + count('not applicable')
  return `${count('kept')} rules kept, ${count('broken')} broken, ${others} not applicable or optional`
}
