// A JsonHandler that refuses every value that its subclass does not handle. The error says what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace weft {

class StrictHandler : public JsonHandler {
 public:
  Status begin_object() final { return skip(+1) ? Status{} : on_begin_object(); }
  Status end_object() final { return skip(-1) ? Status{} : on_end(); }
  Status begin_array() final { return skip(+1) ? Status{} : on_begin_array(); }
  Status end_array() final { return skip(-1) ? Status{} : on_end(); }
  Status key(std::string_view name) final { return skipping_ ? Status{} : on_key(name); }
  Status text(std::string_view value) final { return skip(0) ? Status{} : on_text(value); }
  Status number(std::uint64_t value) final { return skip(0) ? Status{} : on_number(value); }
  Status null() final { return skip(0) ? Status{} : on_null(); }
  Status negative(std::int64_t value) final;
  Status real(double value) final;
  Status boolean(bool value) final;

 protected:
  // Returns what the grammar expects at this point: "a shape (an array) of tensor \"a\"".
  virtual std::string expected() const = 0;
  virtual Status on_begin_object() { return unexpected("an object"); }
  virtual Status on_begin_array() { return unexpected("an array"); }
  virtual Status on_end() = 0;  // at the end of an object or array
  virtual Status on_key(std::string_view name) = 0;
  virtual Status on_text(std::string_view value);
  virtual Status on_number(std::uint64_t value);
  virtual Status on_null() { return unexpected("null"); }

  Status unexpected(std::string_view got) const;
  // Skips the next value, of any kind. Call from on_key().
  void skip_value() { skipping_ = true; }
  // Skips the rest of the object or array that begins. Call from on_begin_object() or on_begin_array(), in place of
  // handling it: on_end() is not called for it.
  void skip_container();

 private:
  bool skip(int depth_change);
  bool skipping_ = false;
  std::size_t depth_ = 0;  // nesting depth within the skipped value
};

}  // namespace weft
