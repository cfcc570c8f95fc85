// How much of everything.
module.exports = {
  loansPerMember: 27,
  requestsPerMinute: 72,
  uploadKilobytes: 1536,
  searchResults: 40,
  passwordLength: 11,
};
