// The files of a publish as a format sees them from one of them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "os/sys.h"
#include "publish/draft.h"
#include "publish/fd_source.h"
#include "weft/format.h"

namespace weft {

class SourceGroup final : public FormatInput {
 public:
  // A file that the format has asked for, open.
  struct Beside {
    Fd fd;
    struct stat seen {};
    std::unique_ptr<FdSource> bytes;
  };

  // `all` are sorted by path and outlive the group, as `main`, the open file of all[number], does.
  SourceGroup(std::span<const Draft> all, std::size_t number, ByteSource& main);

  std::string_view name() const override;
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override;
  // By number among `all`.
  const std::map<std::uint32_t, Beside>& opened() const { return opened_; }
  // The number of a file that beside() takes. Errc::not_found.
  Result<std::uint32_t> number_of(std::string_view path) const;

 private:
  std::span<const Draft> all_;
  const std::size_t number_;
  ByteSource& main_;
  std::map<std::uint32_t, Beside> opened_;
};

}  // namespace weft
