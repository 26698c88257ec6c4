// A file of a publish and the files beside it, as the input of a format.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "os/sys.h"
#include "publish/draft.h"
#include "publish/fd_source.h"
#include "weft/model/format.h"

namespace weft {

class SourceGroup final : public FormatInput {
 public:
  // A file that the format has opened.
  struct Beside {
    Fd fd;
    struct stat seen {};
    std::unique_ptr<FdSource> bytes;
  };

  // `all` are sorted by path. They outlive the group, as does `main`, the open file of all[number].
  SourceGroup(std::span<const Draft> all, std::size_t number, ByteSource& main);

  std::string_view name() const override;
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override;
  // The files that the format has opened, by number among `all`.
  const std::map<std::uint32_t, Beside>& opened() const { return opened_; }
  // Returns the number of the file that beside() opens for `path`. Errc::not_found.
  Result<std::uint32_t> number_of(std::string_view path) const;

 private:
  std::span<const Draft> all_;
  const std::size_t number_;
  ByteSource& main_;
  std::map<std::uint32_t, Beside> opened_;
};

}  // namespace weft
