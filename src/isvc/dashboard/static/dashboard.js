// What server-rendered pages and htmx leave over: relative times, the state of the connection, copying, and streams of
// hidden tabs, which are closed so that many tabs do not use up the connections that a browser opens to one host.
(function () {
  'use strict'

  const UNITS = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]]

  function age(seconds) {
    if (seconds < 0) return '0s'
    const [unit, length] = UNITS.find(([, length]) => seconds >= 2 * length) || UNITS[3]
    return Math.floor(seconds / length) + unit
  }

  function updateTimes() {
    if (document.hidden) return
    for (const each of document.querySelectorAll('time[datetime]')) {
      const then = Date.parse(each.dateTime)
      const text = age((Date.now() - then) / 1000)
      if (!Number.isNaN(then) && each.textContent !== text) each.textContent = text
    }
  }

  function showConnection(lost) {
    document.getElementById('connection').hidden = !lost
  }

  // A reader who is not let in any more, since a token expired or the dashboard started anew, is shown how to get in.
  function signedOut() {
    fetch(location.href, { method: 'HEAD', redirect: 'manual' })
      .then((answer) => { if (answer.status === 401) location.reload() }, () => {})
  }

  document.addEventListener('htmx:sseError', () => {
    showConnection(true)
    signedOut()
  })
  document.addEventListener('htmx:sseOpen', () => showConnection(false))

  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-copy]')
    if (!button) return
    const text = document.getElementById(button.dataset.copy).textContent
    navigator.clipboard.writeText(text).then(() => {
      button.textContent = 'Copied'
      setTimeout(() => { button.textContent = 'Copy' }, 2000)
    })
  })

  // A log that is read at its end stays there; its oldest lines go.
  const MOST_LINES = 2000
  document.addEventListener('htmx:sseBeforeMessage', (event) => {
    const log = event.target.closest('.log')
    if (log) log.dataset.atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40
  })
  document.addEventListener('htmx:sseMessage', (event) => {
    const log = event.target.closest('.log')
    if (!log) return
    while (log.childElementCount > MOST_LINES) log.firstElementChild.remove()
    if (log.dataset.atEnd === 'true') log.scrollTop = log.scrollHeight
  })

  // A stream whose page has been hidden for a while is closed, and the page read again when it is looked at.
  const PATIENCE = 60000
  let hiding = 0
  let closed = false
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding)
    if (document.hidden) {
      hiding = setTimeout(() => {
        for (const each of document.querySelectorAll('[sse-connect]')) {
          htmx.trigger(each, 'htmx:beforeCleanupElement')
          closed = true
        }
      }, PATIENCE)
    } else if (closed) {
      location.reload()
    }
  })

  setInterval(updateTimes, 10000)
})()
