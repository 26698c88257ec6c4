// A file of a publish and the files beside it, as the input of a format.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "publish/draft.h"
#include "weft/model/format.h"

namespace weft {

class SourceGroup final : public FormatInput {
 public:
  static constexpr std::size_t kBesideOpenMax = 64;

  // A file that the format has opened. A checkpoint may have more files than a process may have open, so only the last
  // kBesideOpenMax stay open. A later read opens the file again. Errc::changed: the path then leads to
  // another file.
  class Beside;

  // `all` are sorted by path. They outlive the group, as does `main`, the open file of all[number].
  SourceGroup(std::span<const Draft> all, std::size_t number, ByteSource& main);
  ~SourceGroup() override;

  std::string_view name() const override;
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override;
  // Returns the files that the format has opened, by number among `all`, as they were then.
  std::map<std::uint32_t, struct stat> opened() const;
  // Returns the number of the file that beside() opens for `path`. Errc::not_found.
  Result<std::uint32_t> number_of(std::string_view path) const;

 private:
  std::span<const Draft> all_;
  const std::size_t number_;
  ByteSource& main_;
  std::map<std::uint32_t, std::unique_ptr<Beside>> opened_;
  std::deque<Beside*> open_;  // the last one was opened last
};

}  // namespace weft
