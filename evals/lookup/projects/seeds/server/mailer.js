// Reminds members of what they have promised.
const FIRST_REMINDER_DAYS = 19;
const SECOND_REMINDER_DAYS = 33;
const SUBJECT = "Your seeds are missed";

function remind(loan, today) {
  const late = daysBetween(loan.due, today);
  if (late >= SECOND_REMINDER_DAYS) return sendTo(loan.member, SUBJECT, "second");
  if (late >= FIRST_REMINDER_DAYS) return sendTo(loan.member, SUBJECT, "first");
}

module.exports = { remind };
