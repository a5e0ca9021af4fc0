import { expect, it } from 'vitest'
import { UsageError } from '../../../../src/lib/flags.ts'
import { doctor } from '../../../../src/tools/doctor/doctor.ts'

it.each([
  [['--tiemout', '5s'], "Unknown option '--tiemout'. Did you mean --timeout? Try --help."],
  [['--nothing-like-it'], "Unknown option '--nothing-like-it'. Try --help."],
  [['--rpc'], "Option '--rpc <value>' argument missing. Try --help."],
  [['https://one.example'], "Unexpected argument 'https://one.example'"],
  [['--rpc', ''], '--rpc is empty. Try --help.'],
  [['--timeout', '5'], '--timeout must be a time from 100ms to 300s, such as 10s; it is "5"'],
  [['--timeout', '0s'], '--timeout must be a time from 100ms to 300s, such as 10s; it is "0s"'],
] as const)('the doctor refuses %j', async (args, message) => {
  const refused = doctor(args)
  await expect(refused).rejects.toBeInstanceOf(UsageError)
  await expect(refused).rejects.toThrow(message)
})
