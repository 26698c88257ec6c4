// Prints a listing page by page.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/shared/context.h"
#include "cli/shared/table.h"

namespace weft {

// Holds one page in memory. Call print() without a snapshot, because the reader of the output may be slow. One thread.
class ListingOutput {
 public:
  enum class Form : std::uint8_t { table, json, names };
  ListingOutput(const Context& context, bool names_only, std::vector<TextTable::Column> columns)
      : table(std::move(columns)),
        context_(context),
        form_(context.json ? Form::json
              : names_only ? Form::names
                           : Form::table) {}

  Form form() const { return form_; }
  // Prints the rows that were added since the last call, and drops them.
  void print() {
    const std::string piece = json.take();
    const std::string page = table.take_page();
    const std::string lines = std::exchange(names, {});
    if (form_ == Form::json) return context_.print_json_part(piece);
    context_.print("{}", form_ == Form::names ? lines : page);
  }
  void end() {
    print();
    if (form_ == Form::json) context_.print_json_part("\n");
  }

  // print() writes only the member that belongs to form().
  TextTable table;
  JsonWriter json;
  std::string names;  // one per line

 private:
  const Context& context_;
  const Form form_;
};

}  // namespace weft
