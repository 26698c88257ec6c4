// Completion of command lines, from the tables that the parser and --help use. The scripts of scripts/completions ask
// `weft --complete WORD…` and show the answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/shared/environment.h"

namespace weft {

inline constexpr std::string_view kCompleteOption = "--complete";  // the first word; --help leaves it out

// Completes the last of `words`, the words of a command line from behind "weft" up to the cursor. The last word is ""
// if the cursor stands behind a space. Returns one answer a line:
//   WORD<tab>HELP   WORD begins as the last word does; for --OPTION=VALUE it is the value alone
//   :files, :directories, :groups   the shell adds those that it knows
//   :open           the word may go on behind these answers
// A store that cannot be read has no models.
std::string completions(const std::vector<std::string>& words, const CliEnvironment& environment);

}  // namespace weft
