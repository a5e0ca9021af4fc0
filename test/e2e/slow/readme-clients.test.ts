import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ChildProgram, createTempFolder, freePort, startCommand } from '../../support/child-program.ts'
import { hasPrograms } from '../../support/debian-programs.ts'

/** The clients of the README that use no library, as they stand. */

const readme = readFileSync('README.md', 'utf8')

it.runIf(hasPrograms('curl', 'jq', 'python')).for([
  ['python', 'python3'],
  ['bash', 'bash'],
] as const)(
  'the client in %s prints each fact once, also when the relay is killed and restarted',
  async ([language, interpreter], test) => {
    const folder = await createTempFolder(test)
    const port = String(await freePort())
    const env = { PATH: process.env.PATH, PORT: port, DATA_DIR: folder }
    const start = (...command: readonly [string, ...string[]]) => {
      const program = new ChildProgram(command, { cwd: command[0] === interpreter ? folder : process.cwd(), env })
      test.onTestFinished(() => program.kill())
      return program
    }
    const killed = start(...startCommand)
    const url = await killed.listeningUrl()
    const [, code = ''] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(readme) ?? []
    const client = start(interpreter, '-c', code.replaceAll('http://127.0.0.1:8080', url))
    const printsFacts = (count: number) => client.waitForOutput('stdout', new RegExp(`^(?:\\w+ \\d+-0x.*\\n){${count}}`))
    await printsFacts(2)
    await killed.kill()
    const count = client.stdout.split('\n').length
    await start(...startCommand).listeningUrl()
    const printed = (await printsFacts(count + 3))[0]
      .trim()
      .split('\n')
      .map((line) => line.split(' ').slice(0, 2).join(' '))
    const history = await (await fetch(`${url}/v1/events?symbols=AAPLc&format=ndjson`)).text()
    const facts = [...history.matchAll(/^\{"type":"(\w+)",.*?"key":"([^"]+)"/gm)].map(([, type, key]) => `${type} ${key}`)
    const first = facts.indexOf(printed[0] ?? '')
    expect(printed).toEqual(facts.slice(first, first + printed.length))
  },
)
