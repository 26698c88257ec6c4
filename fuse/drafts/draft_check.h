// What a draft must be so that it can be published, beyond what an import asks: nobody writes to it any more, and no
// link leads out of it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

// What `.weft.json` says of the version.
struct DraftFacts {
  std::string message;
  std::vector<std::pair<std::string, std::string>> metrics;
  std::vector<std::string> tags;
  std::vector<std::string> parents;
  std::string inherit;
  std::string durability;
};

inline constexpr char kDraftFactsFile[] = ".weft.json";
inline constexpr char kDraftErrorFile[] = ".weft.error";

// `content` is the draft's directory. Errc::busy: a file is open for writing or mapped shared and writable (waits for a
// second: the kernel tells of a close a little later); Errc::invalid: what no version can have. `pause` as
// DraftPublisher::publish. Takes kDraftErrorFile away.
Result<DraftFacts> check_draft(int content, const std::function<bool()>& pause);
// Hostile text, at most limits::kDraftFactsMax bytes.
Result<DraftFacts> parse_draft_facts(const std::string& text);

// Writes what is wrong into kDraftErrorFile and returns the errno, with a minus sign.
int refuse(int content, const Error& error);

}  // namespace weft
