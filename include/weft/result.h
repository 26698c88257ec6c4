// Result<T>: a value or an Error (base/result.cc). All failures inside weft are returned this way; exceptions do not
// cross a function that returns a Result, and errno is translated where the system call is made (os/sys.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
class Result;

// An Error on its way to a caller: what WEFT_TRY and WEFT_CHECK return. Each function that fails passes it on, so it is
// one pointer, and its code is in base/result.cc.
class [[nodiscard]] Failure {
 public:
  explicit Failure(Error error);
  Failure(const Failure& other);
  Failure(Failure&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Failure& operator=(Failure other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Failure() {
    if (error_ != nullptr) drop(error_);
  }

  Error& error() const { return *error_; }  // not after a move from this

 private:
  template <class T>
  friend class Result;
  Failure() = default;
  static void drop(Error* error) noexcept;

  Error* error_ = nullptr;  // after a move too
};

// Both throw std::logic_error: a failed Result was asked for its value; one that is ok, or was moved from, was asked
// for its Error.
[[noreturn]] void refuse_value();
[[noreturn]] void refuse_error();

// A union by hand: the templates of std::variant, for each T in each source, take a tenth to a fifth of the build's
// time.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : value_(std::move(value)), ok_(true) {}                        // NOLINT(google-explicit-constructor)
  Result(Error error) : failure_(std::move(error)), ok_(false) {}                 // NOLINT(google-explicit-constructor)
  Result(Failure failure) noexcept : failure_(std::move(failure)), ok_(false) {}  // NOLINT(google-explicit-constructor)
  Result(const Result& other) requires std::copy_constructible<T> : ok_(other.ok_) {
    if (ok_) {
      std::construct_at(&value_, other.value_);
    } else {
      failure_ = other.failure_;
    }
  }
  Result(Result&& other) noexcept : failure_(std::move(other.failure_)), ok_(other.ok_) { take_value(other); }
  Result& operator=(const Result& other) requires std::copy_constructible<T> { return *this = Result(other); }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      drop_value();
      failure_ = std::move(other.failure_);
      ok_ = other.ok_;
      take_value(other);
    }
    return *this;
  }
  ~Result() { drop_value(); }

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }

  T& value() & { return need_value(), value_; }
  const T& value() const& { return need_value(), value_; }
  T&& value() && { return need_value(), std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return need_error(), failure_.error(); }
  Error&& error() && { return need_error(), std::move(failure_.error()); }
  Failure failure() const& { return need_error(), failure_; }
  Failure failure() && { return need_error(), std::move(failure_); }

 private:
  void need_value() const {
    if (!ok_) refuse_value();
  }
  void need_error() const {
    if (failure_.error_ == nullptr) refuse_error();
  }
  void take_value(Result& other) noexcept {
    if (ok_) std::construct_at(&value_, std::move(other.value_));
  }
  void drop_value() noexcept {
    if (ok_) std::destroy_at(&value_);
  }

  Failure failure_;
  union {
    T value_;  // if ok_
  };
  bool ok_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : failure_(std::move(error)), ok_(false) {}                 // NOLINT(google-explicit-constructor)
  Result(Failure failure) noexcept : failure_(std::move(failure)), ok_(false) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  void value() const {}
  const Error& error() const& { return need_error(), failure_.error(); }
  Error&& error() && { return need_error(), std::move(failure_.error()); }
  Failure failure() const& { return need_error(), failure_; }
  Failure failure() && { return need_error(), std::move(failure_); }

 private:
  void need_error() const {
    if (failure_.error_ == nullptr) refuse_error();
  }

  Failure failure_;
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace weft

// WEFT_TRY(auto x, f());  returns f()'s error from the enclosing function, else binds the value.
// WEFT_CHECK(g());        the same for a Status (or a Result whose value is not wanted).
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses
#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)
#define WEFT_TRY_IMPL(tmp, decl, expr)            \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return std::move(tmp).failure(); \
  decl = std::move(tmp).value()
#define WEFT_TRY(decl, expr) WEFT_TRY_IMPL(WEFT_CONCAT(weft_try_, __LINE__), decl, expr)
#define WEFT_CHECK(expr)                                                                      \
  do {                                                                                        \
    auto&& weft_check_ = (expr);                                                              \
    if (!weft_check_.ok()) return std::forward<decltype(weft_check_)>(weft_check_).failure(); \
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
