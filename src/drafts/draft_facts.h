// `.weft.json`: facts about the version that a draft becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

// Settings of a directory whose subdirectories are published one by one (checkpoints.h).
struct EachCheckpoint {
  std::string model;
  std::string pattern;  // of their names (base/glob.h)
  std::string when;     // the file that a program writes last
};

struct DraftFacts {
  std::string message;
  std::vector<std::pair<std::string, std::string>> metrics;
  std::vector<std::string> tags;
  std::vector<std::string> parents;
  std::string inherit;
  std::string durability;
  std::uint64_t keep = 0;  // 0: all versions
  std::optional<EachCheckpoint> each;
};

inline constexpr char kDraftFactsFile[] = ".weft.json";

// Parses hostile text of at most limits::kDraftFactsMax bytes.
Result<DraftFacts> parse_draft_facts(const std::string& text);
// Reads the facts of the directory `content`; nothing if it has no such file.
Result<std::optional<DraftFacts>> read_draft_facts(int content);
// Returns the last metrics that transformers' Trainer logged in trainer_state.json in `content`; empty if there are
// none.
std::vector<std::pair<std::string, std::string>> trainer_metrics(int content);

}  // namespace weft
