// Helpers of the tests of drafts.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>

#include <memory>
#include <optional>
#include <string>

#include "drafts/draft_tree.h"
#include "testing.h"

namespace weft::testing {

// Returns the errno of a failed system call, 0 if there was none.
template <class T>
int os_error_of(const Result<T>& result) {
  return result.ok() ? 0 : result.error().os_error;
}

// Returns the failure's code; nothing if it succeeded.
template <class T>
std::optional<Errc> code_of(const Result<T>& result) {
  return result.ok() ? std::nullopt : std::optional(result.error().code);
}

// A store whose new/ has the directory "a" with the file "x", open for writing.
struct NewDraft {
  const TempDir dir;
  const std::unique_ptr<DraftTree> tree = must(DraftTree::open(dir.path()));
  const DraftFound made = must(tree->make_directory(kNewIno, "a", 0755));
  DraftCreated file;

  explicit NewDraft(mode_t mode = 0644) { file = must(tree->create(made.ino, "x", O_EXCL, mode)); }
};

}  // namespace weft::testing
