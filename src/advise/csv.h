// Reads losses from a CSV file of a trainer, line by line, also while the file grows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "advise/loss_point.h"
#include "advise/loss_series.h"
#include "weft/result.h"

namespace weft::advise {

// The first line names the columns; other columns are not read. Fields may be quoted as in RFC 4180, but have no line
// ends. A row without a step or without a loss is skipped: loggers write such rows for other metrics. One thread.
class CsvLosses {
 public:
  explicit CsvLosses(LossNames names) : names_(std::move(names)) {}

  // Adds the next bytes of the file. A line counts once it is complete. Errc::invalid names the line.
  Status add(std::string_view bytes, LossSeries& into);
  bool records_saves() const { return columns_ && columns_->save; }  // the file has a column for save times
  // Call at the end of the file. The last line may lack its line end. Errc::invalid: there was no line of names.
  Status end(LossSeries& into);

 private:
  struct Columns {
    std::size_t loss = 0;
    std::size_t step = 0;
    std::optional<std::size_t> time;
    std::optional<std::size_t> save;
  };
  Status line(std::string_view text, LossSeries& into);
  Status header(std::string_view text);
  Status row(std::string_view text, LossSeries& into) const;

  LossNames names_;
  std::optional<Columns> columns_;
  std::string rest_;  // the incomplete last line
  std::uint64_t lines_ = 0;
};

}  // namespace weft::advise
