// `.weft.json`: what a draft says of the version that it becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

// Of a directory whose subdirectories are published one by one (checkpoints.h).
struct EachCheckpoint {
  std::string model;
  std::string pattern;  // of their names, as fnmatch(3)
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

// Hostile text, at most limits::kDraftFactsMax bytes.
Result<DraftFacts> parse_draft_facts(const std::string& text);
// Of the directory `content`; nothing if it has no such file.
Result<std::optional<DraftFacts>> read_draft_facts(int content);
// What transformers' Trainer last wrote into the log of trainer_state.json in `content`; empty where it has none.
std::vector<std::pair<std::string, std::string>> trainer_metrics(int content);

}  // namespace weft
