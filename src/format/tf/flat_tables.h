// Tables of a FlatBuffer, without a schema: the fields of a table and their places in a file. The reader holds one
// small window of the file in memory. Source: https://flatbuffers.dev/internals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "format/cursor.h"
#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// A table and its list of fields; all are offsets in the file.
struct FlatTable {
  std::uint64_t at = 0;
  std::uint64_t fields = 0;    // the list: 2 bytes for each field, after 4 others
  std::uint64_t list_end = 0;  // the end of the list
  std::uint64_t bytes = 0;     // of the table
};

// One thread. Errc::invalid: an offset leaves the file. Errc::unsupported: the file has more than
// limits::kFlatTablesMax tables, each counted once for each read. Other errors come from the source.
class FlatTables {
 public:
  // `file` outlives the reader.
  explicit FlatTables(ByteSource& file) : size_(file.size()), cursor_(file, file.size()) {}

  Result<FlatTable> root();
  // Returns the table that a field, or an item of a list of tables, points to.
  Result<FlatTable> table_at(std::uint64_t pointer);

  // Returns the place of a field of `width` bytes; nothing if the table lacks it.
  Result<std::optional<std::uint64_t>> field(const FlatTable& table, unsigned number, std::uint64_t width);
  // Returns the number in a field; `absent` if the table lacks it.
  template <class T>
  Result<T> number(const FlatTable& table, unsigned field_number, T absent = 0) {
    WEFT_TRY(const std::optional<std::uint64_t> place, field(table, field_number, sizeof(T)));
    return place ? number_at<T>(*place) : Result<T>(absent);
  }
  template <class T>
  Result<T> number_at(std::uint64_t place) {
    WEFT_CHECK(need(place, sizeof(T)));
    WEFT_CHECK(cursor_.move_to(place));
    return cursor_.number<T>();
  }
  // Returns the items of the list that a field points to, each of `width` bytes; an empty run if the table lacks it.
  Result<Range> list(const FlatTable& table, unsigned field_number, std::uint64_t width);
  // Returns at most `most` bytes of the text of a field; empty if the table lacks it.
  Result<std::string> text(const FlatTable& table, unsigned field_number, std::uint64_t most);

 private:
  Status need(std::uint64_t place, std::uint64_t bytes) const;

  const std::uint64_t size_;
  HeaderCursor cursor_;
  std::uint64_t tables_ = 0;
};

}  // namespace weft
