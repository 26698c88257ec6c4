#include "cluster_setup/plan.h"

#include <fmt/core.h>

#include <string_view>

#include "base/text.h"

namespace weft::setup {
namespace {

std::string content_text(const PlannedFile& file) {
  if (file.secret) return fmt::format("    ({} bytes, secret)\n", file.content.size());
  std::string text;
  std::string_view content = file.content;
  if (content.ends_with('\n')) content.remove_suffix(1);
  for (const std::string_view line : split(content, '\n')) text += fmt::format("    {}\n", line);
  return text;
}

std::string line_of(const Command& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text;
  for (const auto& [path, mode] : plan.directories) text += fmt::format("directory {} (mode {:04o})\n", path, mode);
  text += fmt::format("store {}\n", plan.store);
  for (const PlannedFile& file : plan.files)
    text += fmt::format("file {} (mode {:04o})\n{}", file.path, file.mode, content_text(file));
  for (const std::string& path : plan.data) text += fmt::format("data {}\n", path);
  for (const Command& command : plan.start) text += fmt::format("run {}\n", line_of(command));
  return text;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace weft::setup
