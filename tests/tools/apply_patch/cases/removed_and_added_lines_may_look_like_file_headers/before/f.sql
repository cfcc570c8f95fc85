select 1
-- a/old
end
