#include "pull/pull_names.h"

#include <fmt/core.h>

#include <span>

#include "base/sha256.h"

namespace weft {
namespace {

constexpr std::size_t kKeyDigits = 32;

}  // namespace

Result<std::string> version_name_of(const HubName& repository) {
  const Status status = check_model_name(repository.name);
  if (status.ok()) return repository.name;
  return Error{Errc::invalid,
               fmt::format("{}: {}; choose another name with --name", text_of(repository), status.error().message)};
}

std::string description_of(const std::string& endpoint, const HubSource& source, std::string_view commit) {
  const std::string revision = source.revision == commit ? "" : fmt::format(", revision {}", source.revision);
  return fmt::format("{} of {}{}, commit {}", text_of(source.repository), endpoint, revision, commit);
}

std::string pull_key(std::string_view text) {
  return to_hex(sha256(std::as_bytes(std::span(text)))).substr(0, kKeyDigits);
}

std::string hub_pull_key(const std::string& endpoint, const HubName& repository) {
  return pull_key(fmt::format("{} {}", endpoint, text_of(repository)));
}

}  // namespace weft
