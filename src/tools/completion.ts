import { type Command, EXIT_OK, UsageError } from '../lib/exit-codes.ts'
import { adviceFor, type CommandFlags, commonFlags, readFlags } from '../lib/flags.ts'
import { flagTerms, helpText } from '../lib/help.ts'

type CompletedCommand = {
  readonly name: string
  readonly summary: string
  readonly flags: CommandFlags
  readonly words: readonly string[]
}

const help = helpText(
  'stocktape completion bash|zsh|fish',
  'Prints a script that completes commands and flags. To load it in each new shell:',
  `  bash   echo 'eval "$(stocktape completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(stocktape completion zsh)"' >> ~/.zshrc    (after compinit)
  fish   stocktape completion fish > ~/.config/fish/completions/stocktape.fish`,
  flagTerms(commonFlags),
)

const scripts: ReadonlyMap<string, (commands: readonly CompletedCommand[]) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
])

export const completionShells: readonly string[] = [...scripts.keys()]
export const completionFlags = commonFlags

export const openCompletion =
  (loadCommands: () => Promise<readonly CompletedCommand[]>): Command =>
  async (args) => {
    const { positionals } = readFlags(completionFlags, args, { help, allowsWords: true })
    const [shell = '', ...others] = positionals
    const script = scripts.get(shell)
    if (!script || others.length > 0) throw new UsageError(mistakeOf(shell, others))
    process.stdout.write(script(await loadCommands()))
    return EXIT_OK
  }

function mistakeOf(shell: string, others: readonly string[]): string {
  if (shell === '') return `name a shell: ${completionShells.join(', ')}`
  if (scripts.has(shell)) return `one shell is enough, and '${others[0]}' is one more`
  return `'${shell}' is none of ${completionShells.join(', ')}. ${adviceFor(shell, completionShells)}`
}

/** If the line names no command, the script completes the flags of the first command. */
function bashScript(commands: readonly CompletedCommand[]): string {
  return `_stocktape() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command=${commands[0]?.name} flags='' words=''
  # Bash splits --flag=value into three words.
  if [[ $word == = ]]; then word=''; elif [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD > 1)) && [[ \${COMP_WORDS[1]} != -* ]]; then command=\${COMP_WORDS[1]}; fi
  COMPREPLY=()
  case "$command $previous" in
${commands.flatMap(bashValues).join('\n')}
  esac
  case $command in
${commands.map(({ name, flags, words }) => `    ${name}) flags='${longFlags(flags)}' words='${words.join(' ')}' ;;`).join('\n')}
  esac
  if ((COMP_CWORD == 1)); then words='${names(commands).join(' ')}'; fi
  if [[ $word == -* ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _stocktape stocktape
`
}

/** Completes the value of a flag with its choices. For a flag without choices, the shell completes file names. */
function bashValues({ name, flags }: CompletedCommand): string[] {
  const withValue = Object.entries(flags).filter(([, { type }]) => type === 'string')
  const pattern = (flag: string): string => quoted(`${name} --${flag}`)
  const free = withValue.filter(([, { choices }]) => !choices).map(([flag]) => pattern(flag))
  return [
    ...(free.length === 0 ? [] : [`    ${free.join(' | ')}) return ;;`]),
    ...withValue.flatMap(([flag, { choices }]) =>
      choices ? [`    ${pattern(flag)}) COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$word")); return ;;`] : [],
    ),
  ]
}

function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef stocktape
_stocktape() {
  local command=${commands[0]?.name}
  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then
    local -a commands=(${commands.map(({ name, summary }) => quoted(`${name}:${summary}`)).join(' ')})
    _describe command commands
    return
  fi
  if [[ $words[2] != -* ]]; then
    command=$words[2]
    shift words
    ((CURRENT--))
  fi
  case $command in
${commands.map((command) => `    ${command.name}) _arguments -s ${zshArguments(command).join(' ')} ;;`).join('\n')}
  esac
}
compdef _stocktape stocktape
# A file in fpath is the body of the function: its first call completes too.
if [[ $funcstack[1] == _stocktape ]]; then _stocktape "$@"; fi
`
}

function zshArguments({ flags, words }: CompletedCommand): string[] {
  const specs = Object.entries(flags).map(([name, { type, description = '', choices }]) => {
    const value = type === 'boolean' ? '' : `:value:${choices ? `(${choices.join(' ')})` : '_files'}`
    const text = firstClause(description).replaceAll(/[\\[\]:]/g, '\\$&')
    return quoted(`--${name}${type === 'boolean' ? '' : '='}${text === '' ? '' : `[${text}]`}${value}`)
  })
  return [...specs, quoted(words.length === 0 ? '*:word:_files' : `1:word:(${words.join(' ')})`)]
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const [first, ...others] = commands
  const lines = commands.flatMap((command) => {
    const isChosen = `__fish_seen_subcommand_from ${command.name}`
    const isMeant = command === first ? `not __fish_seen_subcommand_from ${names(others).join(' ')}` : isChosen
    return [
      `-f -n __fish_use_subcommand -a ${command.name} -d ${fishQuoted(command.summary)}`,
      ...(command.words.length === 0 ? [] : [`-f -n '${isChosen}' -a '${command.words.join(' ')}'`]),
      ...Object.entries(command.flags).map(([name, { type, short, description = '', choices }]) => {
        const value = type === 'boolean' ? '' : choices ? ` -x -a '${choices.join(' ')}'` : ' -r'
        return `-n '${isMeant}' -l ${name}${short ? ` -s ${short}` : ''}${value} -d ${fishQuoted(firstClause(description))}`
      }),
    ]
  })
  return lines.map((line) => `complete -c stocktape ${line}\n`).join('')
}

const names = (commands: readonly CompletedCommand[]): string[] => commands.map(({ name }) => name)
const longFlags = (flags: CommandFlags): string =>
  Object.keys(flags)
    .map((name) => `--${name}`)
    .join(' ')

/** A shell shows one line per flag, so the details after the first clause stay in the help. */
const firstClause = (description: string): string => description.split(/[;:] /)[0] ?? ''
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const fishQuoted = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`
