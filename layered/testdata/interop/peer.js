// A process that locks as npm's proper-lockfile does. It writes lines to its output,
// and goes on when it reads one.
//
//   node peer.js try PATH STALE            one attempt: "held" or "busy"
//   node peer.js hold PATH STALE           waits, "held", a line, "released"
//   node peer.js hammer PATH STALE DIR N   N visits of DIR's critical section

'use strict'

const fs = require('fs')
const path = require('path')
const lockfile = require('proper-lockfile')

const [what, file, stale, dir, holds] = process.argv.slice(2)
const options = { realpath: false, stale: Number(stale), onCompromised: (err) => console.log('lost', err.message) }
const waiting = { ...options, retries: { retries: 100000, factor: 1, minTimeout: 2, maxTimeout: 20, randomize: true } }
const told = () => new Promise((resolve) => process.stdin.once('data', resolve))

async function tryOnce () {
  try {
    const release = await lockfile.lock(file, options)
    console.log('held')
    await release()
  } catch (err) {
    if (err.code !== 'ELOCKED') throw err
    console.log('busy')
  }
}

async function hold () {
  const release = await lockfile.lock(file, waiting)
  console.log('held')
  await told()
  await release()
  console.log('released')
}

async function hammer () {
  for (let i = 0; i < Number(holds); i++) {
    const release = await lockfile.lock(file, waiting)
    visit(`${process.pid}-${i}`)
    await release()
  }
}

// The two detectors of the Go side: a log in which everybody who enters must leave
// before the next, and a file that one visitor alone can make.
function visit (id) {
  const append = (name, line) => fs.appendFileSync(path.join(dir, name), line + '\n')
  const mark = path.join(dir, 'inside')
  append('visits.log', `enter ${id}`)
  let made = true
  try {
    fs.closeSync(fs.openSync(mark, 'wx'))
  } catch (err) {
    if (err.code !== 'EEXIST') throw err
    made = false
    append('overlaps.log', id)
  }
  if (made) fs.unlinkSync(mark)
  append('visits.log', `leave ${id}`)
}

({ try: tryOnce, hold, hammer })[what]().then(() => process.exit(0), (err) => {
  console.log('error', err.message)
  process.exit(1)
})
