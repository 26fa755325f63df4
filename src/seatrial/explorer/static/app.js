// Everything here is a comfort: links and forms do the rest.

// Times are written in UTC; the reader's own time is put in their place, and the exact one stays in the title.
const zoned = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "short", hour: "2-digit", minute: "2-digit"});
for (const time of document.querySelectorAll("time[datetime]")) {
  const date = new Date(time.dateTime);
  if (!Number.isNaN(date.getTime())) time.textContent = zoned.format(date);
}
