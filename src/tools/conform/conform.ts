import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import {
  adviceFor,
  type Command,
  type CommandFlags,
  commonFlags,
  EXIT_FAILED,
  EXIT_OK,
  readFlags,
  UsageError,
} from '../../lib/flags.ts'
import { flagTerms, helpText } from '../../lib/help.ts'
import { judge, type RuleVerdict, summary, verdictLines } from './judge-rule.ts'
import { type Rule, rules } from './rules.ts'

export const conformFlags = {
  only: { type: 'string', description: 'the rules to check, separated by commas', choices: rules.map(({ name }) => name) },
  list: { type: 'boolean', description: 'print the rules and end' },
  json: { type: 'boolean', description: 'one JSON object: ok, verdicts' },
  jobs: { type: 'string', description: 'how many scenarios run at the same time (4)' },
  ...commonFlags,
} as const satisfies CommandFlags

const help = helpText(
  'stocktape conform [--only RULE[,RULE]] [--json] [--jobs 4] [--] COMMAND [ARGUMENT ...]',
  'Checks a client, in any language, against the rules of the contract. It starts a scripted relay on this machine, runs the command once for each rule, and reports which rules the client keeps.',
  'The client follows the relay at STOCKTAPE_URL (also {url} in an argument), with the symbols in STOCKTAPE_SYMBOLS. It prints each message that it received as a line of JSON on standard output, after dropping repetitions. If it finds that messages are missing, it prints {"type":"gap","reason":"missed"}, or reads them from /v1/events and prints them. All else goes to its standard error. A client that keeps its position does so in the file STOCKTAPE_POSITION.',
  flagTerms(conformFlags),
  'Exit codes: 0 all rules are kept, 1 some are broken, 2 a mistake in the arguments.',
)

const JOBS = 4
const JOBS_BOUND = 32

export const conform: Command = async (args) => {
  const [own, command] = splitCommand(args)
  const { values } = readFlags(conformFlags, own, { help })
  const chosen = chooseRules(values.only)
  if (values.list)
    return print(`${chosen.map(({ name, section, sentence }) => `${name.padEnd(22)} ${section} ${sentence}\n`).join('')}`, EXIT_OK)
  const jobs = readJobs(values.jobs)
  checkCommand(command)
  const verdicts = await judgeAll(chosen, command, jobs, (verdict) => {
    if (!values.json) process.stdout.write(`${verdictLines(verdict).join('\n')}\n`)
  })
  const isOk = verdicts.every(({ outcome }) => outcome !== 'broken')
  if (values.json) process.stdout.write(`${JSON.stringify({ ok: isOk, verdicts }, null, 2)}\n`)
  else process.stdout.write(`\n${summary(verdicts)}\n`)
  return isOk ? EXIT_OK : EXIT_FAILED
}

/** Reports in the order of the rules, each as soon as those before it are known. */
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
      verdicts[index] = await judge(rule, command)
      for (let verdict = verdicts[reported]; verdict; verdict = verdicts[reported]) {
        onVerdict(verdict)
        reported += 1
      }
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return verdicts.filter((verdict) => verdict !== undefined)
}

/** The flags, and the command with its own: they begin with the first word that is no flag, or after `--`. */
function splitCommand(args: readonly string[]): readonly [own: readonly string[], command: readonly string[]] {
  const start = args.findIndex((word, index) => word === '--' || (!word.startsWith('-') && !takesValue(args[index - 1])))
  if (start < 0) return [args, []]
  return [args.slice(0, start), args.slice(args[start] === '--' ? start + 1 : start)]
}

const takesValue = (word: string | undefined): boolean => word === '--only' || word === '--jobs'

function chooseRules(only: string | undefined): readonly Rule[] {
  if (only === undefined) return rules
  return only.split(',').map((name) => {
    const rule = rules.find((rule) => rule.name === name)
    if (rule) return rule
    const names = rules.map((rule) => rule.name)
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

function print(text: string, code: number): number {
  process.stdout.write(text)
  return code
}
