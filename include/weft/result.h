// Result<T>: a value or an Error (header only). All failures inside weft are returned this way; exceptions do not cross
// a function that returns a Result, and errno is translated where the system call is made (os/sys.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace weft {

// The kind of a failure. fuse/ maps each to one errno, the command line to one exit code.
enum class Errc : std::uint8_t {
  invalid,      // bad input: a malformed file, name, option
  not_found,    // the named object does not exist
  exists,       // the named object exists already
  permission,   // the system refused (EACCES, EPERM)
  no_space,     // the disk or a quota is full
  busy,         // held by another user of it; a later attempt may succeed
  corrupt,      // stored bytes do not verify
  io,           // the system failed to read or write
  unsupported,  // another format, or a feature that the file system or kernel lacks
  changed,      // a source changed while it was read
  cancelled,    // the user asked to stop
  read_only,    // a write to a read-only object
  is_dir,
  not_dir,
  timed_out,    // no answer in time
  unreachable,  // a peer or service that does not respond now
  absent,       // known bytes that are not on this node
  internal,     // a bug in weft
};

// `message` is one line for the user: what, where, expected, got. No trailing newline or full stop.
struct Error {
  Errc code = Errc::internal;
  std::string message;
  int os_error = 0;  // errno of the failed system call; 0: none. Only fuse/ and src/os read it
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {}
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace weft

// WEFT_TRY(auto x, f());  returns f()'s error from the enclosing function, else binds the value.
// WEFT_CHECK(g());        the same for a Status (or a Result whose value is not wanted).
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses
#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)
#define WEFT_TRY_IMPL(tmp, decl, expr)                         \
  auto tmp = (expr);                                           \
  if (!tmp.ok()) return ::weft::Error(std::move(tmp).error()); \
  decl = std::move(tmp).value()
#define WEFT_TRY(decl, expr) WEFT_TRY_IMPL(WEFT_CONCAT(weft_try_, __LINE__), decl, expr)
#define WEFT_CHECK(expr)                                                         \
  do {                                                                           \
    auto weft_check_ = (expr);                                                   \
    if (!weft_check_.ok()) return ::weft::Error(std::move(weft_check_).error()); \
  } while (false)
// NOLINTEND(bugprone-macro-parentheses)

namespace weft {

// Returns the value; nothing if the object does not exist (Errc::not_found). Other errors stay errors.
template <class T>
Result<std::optional<T>> if_there(Result<T> result) {
  if (!result.ok() && result.error().code == Errc::not_found) return std::optional<T>();
  WEFT_TRY(T value, std::move(result));
  return std::optional<T>(std::move(value));
}

}  // namespace weft
