import { expect, it } from 'vitest'
import { UsageError } from '../../../../src/lib/exit-codes.ts'
import { doctor } from '../../../../src/tools/doctor/doctor.ts'

it.each([
  [['--rpc'], "'--rpc' needs a value. Try --help."],
  [['--rpc', ''], '--rpc is empty. Try --help.'],
  [['--timeout', '5'], '--timeout must be a time with a unit, from 100ms to 5m; it is "5"'],
  [['--timeout', '500'], '--timeout must have a unit, such as 500ms; it is "500"'],
  [['--timeout', '0s'], '--timeout must be a time with a unit, from 100ms to 5m; it is "0s"'],
] as const)('the doctor refuses %j', async (args, message) => {
  const refused = doctor(args)
  await expect(refused).rejects.toBeInstanceOf(UsageError)
  await expect(refused).rejects.toThrow(message)
})
