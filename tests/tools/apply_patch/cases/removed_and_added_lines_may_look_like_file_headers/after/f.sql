select 1
++ b/new
end
